"""Strangers at the peer ports of a cluster, and a certificate that is withdrawn."""
import os, socket, subprocess, threading, time

from stratus import check, wait


class Strangers(threading.Thread):
    """Holds connections to every peer port that say nothing, and renews them."""

    def __init__(self, ports, until):
        super().__init__(daemon=True)
        self.ports, self.until = ports, until

    def run(self):
        held = []
        while time.monotonic() < self.until:
            for port in self.ports:
                for _ in range(8):
                    try:
                        held.append(socket.create_connection(("127.0.0.1", port), timeout=0.5))
                    except OSError:
                        pass
            for connection in held[:-200]:
                connection.close()
            held = held[-200:]
            time.sleep(0.2)
        for connection in held:
            connection.close()


def check_strangers(stand, honest, failures):
    """A node is killed and started beside strangers at the peer ports."""
    until = time.monotonic() + 20
    Strangers(stand.peer_ports, until).start()
    time.sleep(0.5)
    stand("kill", "3")
    begun = time.monotonic()
    stand("start", "3")
    took = time.monotonic() - begun
    found = honest.run(2)
    print(f"{'strangers, and a node that starts':<58} ready after {took:.1f} s; {found.text}", flush=True)
    if took > 10:
        failures.append(f"strangers: a node beside them is ready after {took:.1f} s")
    if found.lost:
        failures.append(f"strangers: {found.lost[0]}")


def check_certificate(stand, honest, failures):
    """A node whose certificate is withdrawn is heard no more; one whose certificate is restored is."""
    done = subprocess.run(["openssl", "x509", "-in", os.path.join(stand.directory, "certificates/c.pem"), "-noout",
                           "-fingerprint", "-sha256"], capture_output=True, text=True)
    fingerprint = done.stdout.strip().split("=", 1)[1]

    def after(condition, what):
        begun = time.monotonic()
        if not wait(condition, 15, 0.1):
            failures.append(f"certificate: {what} not after 15 s")
        return time.monotonic() - begun

    stand.control("cluster", "certificate", "withdraw", fingerprint)
    listed = stand.control("cluster", "certificate", "list")
    check(fingerprint.replace(":", "").lower() in listed, "the withdrawn certificate is not listed")
    away = after(lambda: not stand.gateways[2].is_ready, "the node whose certificate is withdrawn is cut off")
    check(all(gateway.is_ready for gateway in stand.gateways[:2]), "the others are not ready")
    found = honest.run(1)
    if found.lost:
        failures.append(f"certificate: {found.lost[0]}")
    stand.control("cluster", "certificate", "restore", fingerprint)
    back = after(lambda: stand.gateways[2].is_ready, "the node whose certificate is restored is heard")
    print(f"{'a certificate is withdrawn, then restored':<58} cut off after {away:.1f} s, back after {back:.1f} s", flush=True)
