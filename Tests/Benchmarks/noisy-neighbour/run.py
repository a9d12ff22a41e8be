#!/usr/bin/env python3
"""What a tenant feels of another one who takes all it can get (X-27).

    swift build -c release
    Tests/Benchmarks/noisy-neighbour/run.py [--seconds 6] [--rate 60] [--connections 64] [--kinds queries,saves]

One node, two containers. An open loop of half saves, half look-ups of single records goes on in the one, first alone, then
beside 64 connections of the other, each of which sends its next request as soon as its last one is answered:

    lookups     200 records of 300 letters each
    large       16 records of 900,000 letters each
    queries     200 records of 300 letters, by an index
    scans       a query that looks at ten thousand records and finds none
    saves       200 records of 300 letters each
    bulk        10 records of 900,000 letters each
    mixed       all of these in turn

Shown are the quiet tenant's latencies and what the noisy one was given. Its client costs little: what it receives is
thrown away in the kernel, and it runs at a lower priority than the node.

STRATUS_RELEASE names another folder of programs than .build/release.
"""
import argparse, json, os, re, select, socket, subprocess, sys, tempfile, time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Support"))
import stratus
from stratus import RELEASE

KINDS = ["lookups", "large", "queries", "scans", "saves", "bulk", "mixed"]
SMALL_COUNT, LARGE_COUNT = 10_000, 16
NOWHERE = bytearray(1 << 20)


class Node(stratus.Node):
    def __init__(self, directory):
        # Other programs' output than the first line is nobody's here.
        self.log = open(f"{directory}/log", "w")
        super().__init__(f"{directory}/data", program=f"{RELEASE}/stratus", log=self.log)
        self.container = "iCloud.org.example.noisy"

    def place(self, operation):
        return self.path(f"records/{operation}", "noisy")

    def post(self, operation, body):
        connection = self.connect()
        status, text = stratus.post_text(connection, self.place(operation), body)
        connection.close()
        if status != 200 or "serverErrorCode" in text:
            raise SystemExit(f"{operation}: {status} {text[:300]}")
        return json.loads(text)

    def request(self, operation, body):
        body = json.dumps(body).encode()
        return (f"POST {self.place(operation)} HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body

    def end(self):
        self.kill()
        self.log.close()


def save(name, size, number=0):
    return {"operationType": "forceUpdate", "record": {"recordType": "Item" if size < 1_000 else "Big", "recordName": name, "fields": {
        "text": {"value": "x" * size}, "number": {"value": number}}}}


def prepare(node):
    for start in range(0, SMALL_COUNT, 200):
        node.post("modify", {"operations": [save(f"small-{number}", 300, number) for number in range(start, start + 200)]})
    for start in range(0, LARGE_COUNT, 8):
        node.post("modify", {"operations": [save(f"large-{number}", 900_000) for number in range(start, start + 8)]})


def requests(node):
    def at_least(number):
        return {"fieldName": "number", "comparator": "GREATER_THAN_OR_EQUALS", "fieldValue": {"value": number}}
    sort = [{"fieldName": "number", "ascending": True}]
    return {
        "lookups": node.request("lookup", {"records": [{"recordName": f"small-{7 * n}"} for n in range(200)]}),
        "large": node.request("lookup", {"records": [{"recordName": f"large-{n}"} for n in range(LARGE_COUNT)]}),
        "queries": node.request("query", {"resultsLimit": 200, "query": {
            "recordType": "Item", "filterBy": [at_least(SMALL_COUNT // 2)], "sortBy": sort}}),
        "scans": node.request("query", {"resultsLimit": 200, "query": {"recordType": "Item", "sortBy": sort, "filterBy": [
            at_least(0), {"fieldName": "text", "comparator": "NOT_EQUALS", "fieldValue": {"value": "x" * 300}}]}}),
        "saves": node.request("modify", {"operations": [save(f"saved-{n}", 300, SMALL_COUNT + n) for n in range(200)]}),
        "bulk": node.request("modify", {"operations": [save(f"bulk-{n}", 900_000) for n in range(10)]}),
    }


class Connection:
    """Sends one request after the other, and reads of each answer only where it ends."""

    def __init__(self, node, requests, counts, poll):
        self.node, self.requests, self.counts, self.poll, self.turn = node, requests, counts, poll, 0
        self.open()

    def open(self):
        self.socket = socket.create_connection((self.node.host, self.node.port))
        self.socket.setblocking(False)
        self.poll.register(self.socket, select.EPOLLIN | select.EPOLLOUT)
        self.next()

    def next(self):
        self.left = memoryview(self.requests[self.turn % len(self.requests)])
        self.turn += 1
        self.head, self.rest = b"", None
        self.send()

    def send(self):
        try:
            while self.left:
                self.left = self.left[self.socket.send(self.left):]
        except BlockingIOError:
            pass
        self.poll.modify(self.socket, select.EPOLLIN | (select.EPOLLOUT if self.left else 0))

    def receive(self):
        while True:
            if self.rest is None:
                part = self.socket.recv(16_384)
                if not part:
                    raise OSError
                self.head += part
                end = self.head.find(b"\r\n\r\n")
                if end < 0:
                    continue
                self.status = int(self.head[9:12])
                length = re.search(rb"content-length: (\d+)", self.head[:end].lower())
                self.length = int(length.group(1))
                self.rest = self.length - (len(self.head) - end - 4)
            while self.rest:
                # TCP throws away what is received so.
                count = self.socket.recv_into(NOWHERE, min(self.rest, len(NOWHERE)), socket.MSG_TRUNC)
                if count == 0:
                    raise OSError
                self.rest -= count
            self.counts[self.status] = self.counts.get(self.status, 0) + 1
            self.counts["bytes"] = self.counts.get("bytes", 0) + self.length
            self.next()

    def handle(self, events):
        try:
            if events & select.EPOLLOUT and self.left:
                self.send()
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self.receive()
        except BlockingIOError:
            pass
        except OSError:
            self.counts["cut"] = self.counts.get("cut", 0) + 1
            self.poll.unregister(self.socket)
            self.socket.close()
            self.open()


def make_noise(node, requests, count, until):
    """In a process of its own; says on its way out what it was given."""
    os.nice(10)
    counts, poll, connections = {}, select.epoll(), {}
    for number in range(count):
        connection = Connection(node, requests, counts, poll)
        connection.turn += number
        connections[number] = connection
    while time.monotonic() < until:
        numbers = {connection.socket.fileno(): connection for connection in connections.values()}
        for descriptor, events in poll.poll(0.1):
            if descriptor in numbers:
                numbers[descriptor].handle(events)
    return counts


class Noise:
    def __init__(self, node, requests, count, seconds):
        self.began = time.monotonic()
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.write(writer, json.dumps(make_noise(node, requests, count, self.began + seconds)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        self.reader = os.fdopen(reader)

    def end(self):
        text = self.reader.read()
        self.reader.close()
        os.waitpid(self.pid, 0)
        return json.loads(text or "{}")


def measure(node, directory, options):
    out = f"{directory}/load.json"
    done = subprocess.run(
        [f"{RELEASE}/stratus-load", "run", "--url", node.url, "--container", "iCloud.org.example.quiet", "--api-token", node.api_token,
         "--web-auth-token", "quiet", "--workload", "ycsb-a", "--records", "1000", "--rate", str(options.rate), "--clients", "32",
         "--seconds", str(options.seconds), "--json", out, *([] if not os.path.exists(out) else ["--no-prepare"])],
        capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"stratus-load: {done.stderr}{done.stdout}")
    with open(out) as file:
        return json.load(file)


def show(name, report, base=None, noise=None, seconds=1):
    columns = [f"{name:9}"]
    for kind in ("lookup", "save"):
        figures = report["kinds"][kind]
        ratio = "" if base is None else f" ({figures['p99'] / base['kinds'][kind]['p99']:.1f} x)"
        columns.append(f"{kind} p50 {figures['p50'] / 1000:7.1f} p99 {figures['p99'] / 1000:7.1f} ms{ratio:10}")
    columns.append(f"again {report['triedAgain']:3} failed {report['failed']}")
    if noise is not None:
        answered = ", ".join(f"{count / seconds:.0f}/s of {status}" for status, count in sorted(noise.items()) if status != "bytes")
        columns.append(f"noisy: {answered}, {noise.get('bytes', 0) / seconds / 2**20:.0f} MiB/s")
    print("  ".join(columns), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--rate", type=int, default=60)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--json")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory(prefix="stratus-noisy-", dir="/var/tmp") as directory:
        node = Node(directory)
        try:
            prepare(node)
            every = requests(node)
            measure(node, directory, options)
            base = found["alone"] = measure(node, directory, options)
            show("alone", base)
            for kind in options.kinds.split(","):
                wanted = list(every.values()) if kind == "mixed" else [every[kind]]
                # A second to begin, and it goes on until the other has ended.
                noise = Noise(node, wanted, options.connections, options.seconds + 3)
                time.sleep(1)
                report = measure(node, directory, options)
                noise.given = noise.end()
                found[kind] = {**report, "noise": noise.given}
                show(kind, report, base, noise.given, options.seconds + 3)
            show("after", measure(node, directory, options), base)
        finally:
            node.end()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
