"""Gives a client a cluster of three nodes whose custom zones lie in four buckets, behind one address with TLS.

    three_nodes.py BINARY WORK TLS COMMAND…

TLS is a folder with `server.pem` and `server.key`. Each connection goes to the next node, as a load balancer would do it. The
command gets the URL and an API token as its last words. Ends with the status of the command.
"""
import os
import socket
import ssl
import subprocess
import sys
import threading

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Support"))
import stratus


def copy(source, target):
    """Hands on bytes until one side ends, and ends the other."""
    try:
        while data := source.recv(65_536):
            target.sendall(data)
    except OSError:
        pass
    for one in (source, target):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def join(client, tls, address):
    host, port = address.rsplit(":", 1)
    try:
        with tls.wrap_socket(client, server_side=True) as outside, socket.create_connection((host, int(port))) as inside:
            back = threading.Thread(target=copy, args=(inside, outside), daemon=True)
            back.start()
            copy(outside, inside)
            back.join()
    except OSError:
        client.close()


def serve(listener, tls, addresses):
    count = 0
    while True:
        client, _ = listener.accept()
        threading.Thread(target=join, args=(client, tls, addresses[count % len(addresses)]), daemon=True).start()
        count += 1


def main():
    binary, work, certificates, *command = sys.argv[1:]
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(os.path.join(certificates, "server.pem"), os.path.join(certificates, "server.key"))
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    cluster = stratus.Cluster(work, binary, {"STRATUS_DEVELOPMENT_ZONE_BUCKETS": "4", "STRATUS_ASSETS_URL": url})
    try:
        cluster.up("--partitions", "16")
        threading.Thread(target=serve, args=(listener, tls, cluster.addresses), daemon=True).start()
        return subprocess.run([*command, url, cluster.facts["apiToken"]]).returncode
    finally:
        cluster.run("down")


if __name__ == "__main__":
    sys.exit(main())
