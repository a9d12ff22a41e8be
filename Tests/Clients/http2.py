"""Drives the HTTP/2 of a real `stratus dev`: over TLS and in plain, with PyPI's h2, with curl, and with floods.

    http2.py BINARY DIRECTORY
"""

import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Support"))
import stratus

binary, work = sys.argv[1:3]
failed = False


def step(name, body):
    global failed
    try:
        detail = body() or ""
        print(f"PASS {name}{': ' + detail if detail else ''}", flush=True)
    except Exception as error:  # noqa: BLE001
        failed = True
        print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)


HTTP2_ON = {"STRATUS_CLIENT_HTTP2": "true", "STRATUS_CLIENT_PLAIN_HTTP2": "true"}


def connected(port):
    raw = socket.create_connection(("127.0.0.1", port), timeout=30)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return raw


class Node(stratus.Node):
    """A node for development, for the time of a `with`."""

    def __init__(self, name, *options):
        self.data = os.path.join(work, name)
        super().__init__(self.data, "--admin", "127.0.0.1:0", *options, program=binary,
                         log=open(os.path.join(work, name + ".log"), "w"), settings=HTTP2_ON)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def path(self, operation):
        return super().path(operation, self.facts["webAuthToken"])

    def connect(self):
        raw = connected(self.port)
        if "authorityFile" not in self.facts:
            return raw
        context = ssl.create_default_context(cafile=self.facts["authorityFile"])
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context.wrap_socket(raw, server_hostname=self.host)


class Three(stratus.Cluster):
    """Three nodes with custom zones in four buckets, for the time of a `with`. Each connection goes to the next node."""

    def __init__(self):
        super().__init__(os.path.join(work, "three"), binary, {**HTTP2_ON, "STRATUS_DEVELOPMENT_ZONE_BUCKETS": "4"})
        self.turn = 0

    def __enter__(self):
        return self.up("--partitions", "16")

    def __exit__(self, *_):
        self.run("down")

    @property
    def url(self):
        """Of the next node."""
        self.turn += 1
        return f"http://{self.addresses[self.turn % 3]}"

    def path(self, operation):
        return super().path(operation, self.facts["webAuthToken"])

    def connect(self):
        return connected(int(self.url.rsplit(":", 1)[1]))


class Client:
    """h2 on a blocking socket."""

    def __init__(self, node):
        self.node = node
        self.socket = node.connect()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.answers = {}
        self.ended = None
        self.flush()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def request(self, method, path, body=b"", extra=(), ends=True):
        stream = self.h2.get_next_available_stream_id()
        headers = [(":method", method), (":scheme", "https"), (":authority", self.node.url.split("//")[1]),
                   (":path", path), *extra]
        self.h2.send_headers(stream, headers, end_stream=ends and not body)
        self.answers[stream] = {"status": None, "body": b"", "done": False, "reset": None}
        self.flush()
        while body:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(body))
            if room == 0:
                self.receive()
                continue
            self.h2.send_data(stream, body[:room], end_stream=ends and room == len(body))
            body = body[room:]
            self.flush()
        return stream

    def receive(self):
        data = self.socket.recv(65536)
        if not data:
            self.ended = self.ended or "closed"
            return
        for event in self.h2.receive_data(data):
            answer = self.answers.get(getattr(event, "stream_id", None))
            if isinstance(event, h2.events.ConnectionTerminated):
                self.ended = event.error_code
            if answer is None:
                continue
            if isinstance(event, h2.events.ResponseReceived):
                answer["status"] = int(dict(event.headers)[":status"])
                answer["headers"] = dict(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                answer["body"] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                answer["done"] = True
            elif isinstance(event, h2.events.StreamReset):
                answer["reset"] = event.error_code
                answer["done"] = True
        self.flush()

    def wait(self, *streams):
        while not all(self.answers[stream]["done"] for stream in streams) and self.ended is None:
            self.receive()
        return [self.answers[stream] for stream in streams]

    def post(self, operation, body):
        [answer] = self.wait(self.request("POST", self.node.path(operation), json.dumps(body).encode()))
        return answer["status"], json.loads(answer["body"])


def expect(condition, *said):
    if not condition:
        raise AssertionError(" ".join(str(one) for one in said))


def conversation(node):
    client = Client(node)
    name = f"n-{node.url.rsplit(':', 1)[1]}"
    status, answer = client.post("records/modify", {"operations": [{
        "operationType": "create", "record": {"recordName": name, "recordType": "Item", "fields": {"title": {"value": "over h2"}}}}]})
    expect(status == 200 and answer["records"][0]["recordName"] == name, status, answer)
    status, answer = client.post("records/lookup", {"records": [{"recordName": name}]})
    expect(answer["records"][0]["fields"]["title"]["value"] == "over h2", answer)
    status, answer = client.post("records/query", {"query": {"recordType": "Nobody"}})
    expect(status == 404 and answer["serverErrorCode"] == "NOT_FOUND", status, answer)
    return f"{node.url.split(':')[0]}, saved and read back"


def events(answer):
    """The data of the events that have come whole."""
    whole = answer["body"].decode().rpartition("\n\n")[0]
    return [json.loads(line[6:]) for line in whole.split("\n") if line.startswith("data: ")]


def follow(node, client, parameters):
    """A live stream, as one stream of the connection."""
    return client.request("GET", node.path("live") + parameters)


def put(client, names, size=10):
    status, answer = client.post("records/modify", {"zoneID": {"zoneName": "Live"}, "operations": [
        {"operationType": "create", "record": {"recordName": name, "recordType": "Item",
                                               "fields": {"title": {"value": "x" * size}}}} for name in names]})
    expect(status == 200 and all("serverErrorCode" not in record for record in answer["records"]), status, answer)


def live(node):
    client = Client(node)
    client.post("zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "Live"}}}]})
    stream = follow(node, client, "&zone=Live&syncToken=")
    answer = client.answers[stream]
    while not events(answer):
        client.receive()
    expect(answer["headers"]["content-type"] == "text/event-stream", answer["headers"])
    begun = time.monotonic()
    # On another stream of the same connection.
    put(client, ["first"])
    while len(events(answer)) < 2:
        client.receive()
    took = time.monotonic() - begun
    expect([record["recordName"] for record in events(answer)[1]["records"]] == ["first"], events(answer))
    put(client, [f"large-{number}" for number in range(100)], 5_000)
    return f"{took * 1000:.0f} ms, the save included"


def lazy_reader(node):
    """Asks for 500 KB as events, and never reads: its window is 64 KB."""
    client = Client(node)
    return client, follow(node, client, "&zone=Live"), time.monotonic()


def lazy_reader_is_ended(client, stream, begun):
    time.sleep(max(0, begun + 12 - time.monotonic()))
    answer = client.answers[stream]
    while answer["reset"] is None and client.ended is None:
        # Reads what there is, and makes no room.
        client.h2.acknowledge_received_data = lambda *_: None
        client.receive()
    expect(answer["reset"] is not None, client.ended, len(answer["body"]))
    return f"its stream was reset after {len(answer['body'])} bytes"


def many_streams(node):
    client = Client(node)
    while client.h2.remote_settings.max_concurrent_streams > 1000:
        client.receive()
    body = json.dumps({"zones": [{"zoneID": {"zoneName": "_defaultZone"}}]}).encode()
    done = 0
    for _ in range(5):
        streams = [client.request("POST", node.path("zones/lookup"), body) for _ in range(100)]
        for answer in client.wait(*streams):
            expect(answer["status"] == 200, answer)
            done += 1
    return f"{done} requests over one connection, 100 at a time"


def stop_is_told(node):
    client = Client(node)
    client.post("zones/list", {})
    node.process.terminate()
    while client.ended is None:
        client.receive()
    expect(client.ended == 0, "GOAWAY", client.ended)
    expect(node.process.wait(60) == 0, "exit", node.process.returncode)
    return "GOAWAY without an error, and exit 0"


# Floods, frame by frame.

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def head(stream, flags=5):
    return frame(1, flags, stream, b"\x82\x87\x84\x41\x01x")


SETTINGS = frame(4)


def goes_away(node, flood, name, codes=(11,)):
    """Sends the flood until the node ends the connection; returns how much it took."""
    raw = node.connect()
    raw.settimeout(30)
    received = b""
    end = threading.Event()

    def read():
        nonlocal received
        try:
            while True:
                data = raw.recv(65536)
                if not data:
                    break
                received += data
        except OSError:
            pass
        end.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    sent = 0
    start = time.monotonic()
    try:
        raw.sendall(PREFACE + SETTINGS)
        for piece in flood:
            raw.sendall(piece)
            sent += len(piece)
            if end.is_set() or time.monotonic() - start > 20:
                break
    except OSError:
        pass
    end.wait(20)
    raw.close()
    at, code = 0, None
    while at + 9 <= len(received):
        length = int.from_bytes(received[at:at + 3], "big")
        if received[at + 3] == 7:
            code = int.from_bytes(received[at + 13:at + 17], "big")
        at += 9 + length
    expect(code in codes, name, "GOAWAY", code, "after", sent, "bytes")
    return f"GOAWAY after at most {sent} bytes"


def forever(make):
    number = 0
    while number < 200_000:
        yield make(number)
        number += 1


FLOODS = [
    ("rapid reset", lambda: forever(lambda n: head(2 * n + 1) + frame(3, 0, 2 * n + 1, b"\0\0\0\x08")), (11,)),
    ("CONTINUATION", lambda: iter([head(1, 1)] + [frame(9, 0, 1, b"\0\x01a\x01b")] * 1000), (11,)),
    ("PING", lambda: forever(lambda n: frame(6, 0, 0, b"12345678") * 10), (11,)),
    ("SETTINGS", lambda: forever(lambda n: frame(4, 0, 0, b"\0\x04\0\0\xff\xff") * 10), (11,)),
    ("PRIORITY", lambda: forever(lambda n: frame(2, 0, 2 * n + 1, b"\0\0\0\0\x10") * 10), (11,)),
    ("unknown frames", lambda: forever(lambda n: frame(0xCC, 0, 0, b"x") * 10), (11,)),
    ("WINDOW_UPDATE", lambda: forever(lambda n: frame(8, 0, 0, b"\0\0\0\x01") * 10), (11,)),
    ("empty DATA", lambda: iter([head(1, 4).replace(b"\x82", b"\x83", 1)] + [frame(0, 0, 1) * 10] * 10000), (11,)),
    ("an index beyond the table", lambda: iter([frame(1, 5, 1, b"\xff\x80\x01")]), (9,)),
    ("an even stream", lambda: iter([head(2)]), (1,)),
    ("a frame beyond the size", lambda: iter([frame(0, 0, 1, b"\0" * 20000)]), (6, 1)),
    ("padding beyond the frame", lambda: iter([head(1, 4).replace(b"\x82", b"\x83", 1), frame(0, 8, 1, b"\xff\0")]), (1,)),
]


def honest(node, seconds):
    client = Client(node)
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        [answer] = client.wait(client.request("POST", node.path("zones/list"), b"{}"))
        expect(answer["status"] == 200, answer)
        times.append(time.monotonic() - begun)
    times.sort()
    return times[len(times) * 99 // 100]


def curl(node):
    done = subprocess.run(["curl", "-sS", "-i", "--http2-prior-knowledge", "-d", "{}", node.url + node.path("zones/list")],
                          capture_output=True, text=True, timeout=60)
    expect(done.stdout.startswith("HTTP/2 200") and '"Live"' in done.stdout, done.stdout, done.stderr)
    return "HTTP/2 200"


def in_zones(node, place):
    """What a client does, where custom zones lie in buckets."""
    step(f"{place}: h2, with prior knowledge", lambda: conversation(node))
    step(f"{place}: many streams", lambda: many_streams(node))
    step(f"{place}: a live stream beside other requests", lambda: live(node))
    step(f"{place}: curl --http2-prior-knowledge", lambda: curl(node))


with Node("plain") as node:
    step("h2 in plain, with prior knowledge", lambda: conversation(node))
    step("many streams", lambda: many_streams(node))
    step("a live stream beside other requests", lambda: live(node))
    lazy = lazy_reader(node)

    step("curl --http2-prior-knowledge", lambda: curl(node))
    for name, flood, codes in FLOODS:
        step(f"G-21 {name}", lambda: goes_away(node, flood(), name, codes))

    def beside():
        quiet = honest(node, 2)
        stop = threading.Event()

        def attack():
            while not stop.is_set():
                for _, flood, _ in FLOODS[:8]:
                    try:
                        goes_away(node, flood(), "", range(20))
                    except Exception:  # noqa: BLE001
                        pass
                    if stop.is_set():
                        break

        thread = threading.Thread(target=attack, daemon=True)
        thread.start()
        loud = honest(node, 4)
        stop.set()
        thread.join(30)
        return f"an honest client's 99th percentile {quiet * 1e3:.1f} ms alone, {loud * 1e3:.1f} ms beside one that floods"

    step("G-21 an honest client beside floods", beside)
    step("the node still serves", lambda: conversation(node))
    step("a live stream that nobody reads is ended", lambda: lazy_reader_is_ended(*lazy))
    step("a stop is told", lambda: stop_is_told(node))

with Node("secure", "--tls") as node:
    step("ALPN agrees on h2", lambda: expect(node.connect().selected_alpn_protocol() == "h2", "not h2"))
    step("h2 over TLS", lambda: conversation(node))
    step("many streams over TLS", lambda: many_streams(node))

with Node("zones", "--placement", "zone", "--zone-buckets", "4") as node:
    in_zones(node, "zones, one node")

with Three() as nodes:
    in_zones(nodes, "zones, three nodes")

sys.exit(1 if failed else 0)
