"""Stand-ins of push providers: APNs over TLS and HTTP/2 with PyPI's h2, and a Web Push service over TLS and HTTP/1.1.

Each writes every request that it receives into a book, and answers as it is told. Neither shares code with Stratus.
"""

import base64
import collections
import datetime
import http.server
import ipaddress
import json
import os
import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import http_ece
import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def pem_of(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


class Authority:
    """A certificate authority and one certificate for 127.0.0.1 and localhost."""

    def __init__(self, directory):
        now = datetime.datetime.now(datetime.timezone.utc)
        root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stand-in authority")])

        def builder(subject, public):
            return (x509.CertificateBuilder().subject_name(subject).issuer_name(root_name).public_key(public)
                    .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
                    .not_valid_after(now + datetime.timedelta(days=30)))

        root = builder(root_name, root_key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(root_key, hashes.SHA256())
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        leaf = builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), key.public_key()).add_extension(
            names, critical=False).sign(root_key, hashes.SHA256())
        self.file = os.path.join(directory, "authority.pem")
        self.chain, self.key = os.path.join(directory, "leaf.pem"), os.path.join(directory, "leaf.key")
        for path, data in ((self.file, root.public_bytes(serialization.Encoding.PEM)),
                           (self.chain, leaf.public_bytes(serialization.Encoding.PEM)), (self.key, pem_of(key))):
            with open(path, "wb") as file:
                file.write(data)

    def context(self, *protocols):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain, self.key)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context


class Book:
    """What a stand-in has received, in order, with the times of a clock that all processes share."""

    def __init__(self):
        self.lock = threading.Condition()
        self.hits = []

    def write(self, hit):
        hit["at"] = time.monotonic()
        with self.lock:
            self.hits.append(hit)
            self.lock.notify_all()

    def wait(self, what, patience=10):
        """The hits for which `what` holds, once there is one."""
        return self.wait_for(lambda hits: [hit for hit in hits if what(hit)], patience)

    def wait_for(self, find, patience=10):
        until = time.monotonic() + patience
        with self.lock:
            while True:
                found = find(self.hits)
                if found or time.monotonic() > until:
                    return found
                self.lock.wait(max(0.01, until - time.monotonic()))


class APNs:
    """Answers 200 to devices it knows and BadDeviceToken to others, unless a script says otherwise.

    A script is a list for one device, taken from the front: a status, a (status, reason) or a (status, reason,
    timestamp), "goaway", "cut" or "hang". `down`: one answer to everybody.
    """

    def __init__(self, authority, public_key):
        self.book, self.devices, self.scripts = Book(), set(), collections.defaultdict(list)
        self.down = None
        self.public_key = public_key
        self.connections = 0
        self.context = authority.context("h2")
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"https://localhost:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            plain, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain):
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.context.wrap_socket(plain, server_side=True) as wire:
                assert wire.selected_alpn_protocol() == "h2"
                self.connections += 1
                self.talk(wire)
        except (OSError, ssl.SSLError, h2.exceptions.ProtocolError, AssertionError):
            pass

    def talk(self, wire):
        connection = h2.connection.H2Connection(config=h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        wire.sendall(connection.data_to_send())
        streams = {}
        while data := wire.recv(65_536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    streams[event.stream_id] = (dict(event.headers), bytearray())
                elif isinstance(event, h2.events.DataReceived):
                    streams[event.stream_id][1].extend(event.data)
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    headers, body = streams.pop(event.stream_id)
                    answer = self.answer(headers, bytes(body))
                    if answer == "cut":
                        return
                    if answer == "goaway":
                        # It has looked at nothing from this stream on.
                        connection.close_connection(last_stream_id=event.stream_id - 2 if event.stream_id > 1 else 0)
                        wire.sendall(connection.data_to_send())
                        time.sleep(0.05)
                        return
                    if answer == "hang":
                        continue
                    status, said = answer
                    fields = [(":status", str(status)), ("apns-id", headers.get("apns-id", ""))]
                    connection.send_headers(event.stream_id, fields, end_stream=not said)
                    if said:
                        connection.send_data(event.stream_id, json.dumps(said).encode(), end_stream=True)
            wire.sendall(connection.data_to_send())

    def answer(self, headers, body):
        device = headers[":path"].rsplit("/", 1)[1]
        token = headers.get("authorization", "").removeprefix("bearer ")
        script = self.scripts[device]
        if self.down is not None:
            step = self.down
        else:
            step = script.pop(0) if script else (200 if device in self.devices else (400, "BadDeviceToken"))
        if step != "cut" and step != "goaway" and step != "hang":
            status, reason, *timestamp = step if isinstance(step, tuple) else (step, None)
            try:
                jwt.decode(token, self.public_key, algorithms=["ES256"], options={"verify_iat": False})
            except jwt.InvalidTokenError:
                status, reason = 403, "InvalidProviderToken"
            said = {} if reason is None else {"reason": reason}
            if timestamp:
                said["timestamp"] = timestamp[0]
            step = (status, said)
        self.book.write({"device": device, "headers": headers, "body": json.loads(body), "token": token,
                         "answer": step[0] if isinstance(step, tuple) else step})
        return step


class WebPush:
    """A push service of browsers. Its subscriptions have a key pair each, by which it decrypts what comes."""

    def __init__(self, authority):
        self.book, self.browsers, self.status = Book(), {}, {}
        standin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = standin.receive(self.path, dict(self.headers), body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def get_request(self):
                plain, address = super().get_request()
                return standin.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address

            def handle_error(self, *_):
                pass

        self.context = authority.context("http/1.1")
        self.server = Server(("127.0.0.1", 0), Handler)
        self.origin = f"https://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def subscribe(self, name):
        """What a page's pushManager.subscribe() gives."""
        key, secret = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        self.browsers[f"/push/{name}"] = (key, secret)
        point = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        return {"endpoint": f"{self.origin}/push/{name}", "keys": {"p256dh": encoded(point), "auth": encoded(secret)}}

    def receive(self, path, headers, body):
        key, secret = self.browsers[path]
        plain = http_ece.decrypt(body, private_key=key, auth_secret=secret, version="aes128gcm")
        fields = dict(part.strip().split("=", 1) for part in headers["Authorization"].removeprefix("vapid ").split(","))
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(fields["k"]))
        claims = jwt.decode(fields["t"], public, algorithms=["ES256"], audience=self.origin)
        status = self.status.get(path, 201)
        self.book.write({"path": path, "headers": headers, "body": json.loads(plain), "claims": claims, "k": fields["k"],
                         "answer": status})
        return status
