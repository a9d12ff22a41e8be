#!/usr/bin/env python3
"""What pushes, subscriptions and held polls cost one node, against a stand-in of APNs on the same machine.

    swift build -c release --product stratus
    swift build -c release --product stratusctl
    Tests/Benchmarks/push/run.py fan-out [--subscribers 20000] [--web]
    Tests/Benchmarks/push/run.py saves [--subscribers 100000]
    Tests/Benchmarks/push/run.py polls [--polls 10000] [--tls]
    Tests/Benchmarks/push/run.py streams [--streams 1000]
    Tests/Benchmarks/push/run.py http2
    Tests/Benchmarks/push/run.py latency [--rate 0]
    Tests/Benchmarks/push/run.py across [--saves 300]

    fan-out   many users of one public database, with a subscription and a device each. One record is saved. How long until
              the provider has taken the last push, what a push costs the node, and what others wait meanwhile
    saves     saves of one record before anybody subscribes, and beside subscriptions to its type whose filter does not match
    polls     the node's memory before and while pages hold a poll each
    streams   the node's CPU while live streams follow one zone, in which somebody saves once a second
    http2     look-ups of one record over TLS, 16 connections with 16 requests each, HTTP/1.1 and HTTP/2
    latency   from a save that fires until the push has arrived at the provider's socket, beside saves that fire nothing. --rate 0 finds the
              peak of such saves first and takes half of it
    across    three nodes: from a save at the first until a poll that each of them holds is answered

The provider is Debian's nghttpd, which answers every request with 200; with --web it is a Web Push service, played by nginx, which
answers 201. Nothing in either knows Stratus. In `latency` a relay stands
before it and notes when bytes of the node arrive: each save fires one push, and the next save waits for it.
"""
import argparse, asyncio, base64, functools, json, os, re, resource, socket, ssl, subprocess, sys, tempfile, threading, time, urllib.parse

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Support"))
import stratus

PROGRAM = os.environ.get("STRATUS_BINARY", os.path.join(stratus.RELEASE, "stratus"))
TEAM, KEY, TOPIC = "DEF123GHIJ", "ABC123DEFG", "org.example.shelves"


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


class Provider(stratus.Process):
    """nghttpd, with a certificate of its own."""

    def __init__(self, place):
        self.place = place
        self.certificate, key = os.path.join(place, "provider.pem"), os.path.join(place, "provider.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", self.certificate)
        self.port = stratus.free_port()
        self.url = f"https://localhost:{self.port}"
        self.process = subprocess.Popen(self.words(key), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.signing = os.path.join(place, "signing.p8")
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.signing)

    def words(self, key):
        return ["nghttpd", "--echo-upload", "-m", "1000", str(self.port), key, self.certificate]

    def prepare(self, control):
        """The words that give the container a key for it."""
        return [*control, "push", "apns", "add", "--team", TEAM, "--key-id", KEY, "--key-file", self.signing, "--topics", TOPIC]

    def device(self, number):
        return {"apnsEnvironment": "development", "apnsToken": f"{number:064x}"}


class WebPush(Provider):
    """nginx, which takes every message of every browser. All browsers have the key of one."""

    def words(self, key):
        configuration = os.path.join(self.place, "nginx.conf")
        temporary = " ".join(f"{name}_temp_path {self.place}/{name};" for name in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(configuration, "w") as file:
            file.write(f"daemon off; pid {self.place}/nginx.pid; error_log {self.place}/nginx.log; events {{}} http {{ access_log off; "
                       f"keepalive_requests 100000000; {temporary} server {{ listen {self.port} ssl; ssl_certificate "
                       f"{self.certificate}; ssl_certificate_key {key}; location / {{ return 201; }} }} }}")
        return ["nginx", "-c", configuration, "-p", self.place]

    def kill(self):
        self.stop()

    def prepare(self, control):
        return [*control, "push", "vapid", "create", "--contact", "mailto:push@example.org"]

    @functools.cached_property
    def keys(self):
        der = subprocess.run(["openssl", "pkey", "-in", self.signing, "-pubout", "-outform", "DER"], check=True,
                             capture_output=True).stdout
        return {name: base64.urlsafe_b64encode(data).rstrip(b"=").decode() for name, data in (
            ("p256dh", der[-65:]), ("auth", b"sixteen octets!!"))}

    def device(self, number):
        return {"endpoint": f"{self.url}/push/{number}", "keys": self.keys}


class Relay:
    """Passes bytes between the node and the provider, and notes when some of the node's arrive."""

    def __init__(self, port):
        self.target, self.arrived, self.at = port, threading.Event(), 0.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.target))
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.pass_on, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(far, near, False), daemon=True).start()

    def pass_on(self, source, sink, is_nodes):
        try:
            while data := source.recv(65_536):
                if is_nodes and not self.arrived.is_set():
                    self.at = time.perf_counter()
                    self.arrived.set()
                sink.sendall(data)
        except OSError:
            pass


class Node(stratus.Node):
    def __init__(self, place, *words, provider=None):
        # All clients come from one address, and all streams are one user's.
        settings = {"STRATUS_LIMITS_CONNECTION_COUNT_PER_ADDRESS_MAX": "16384",
                    "STRATUS_LIMITS_USER_LIVE_STREAM_COUNT_MAX": "1000"}
        settings |= {} if provider is None else {
            "STRATUS_PUSH_APNS_DEVELOPMENT_URL": provider.url, "STRATUS_PUSH_APNS_PRODUCTION_URL": provider.url,
            "STRATUS_PUSH_AUTHORITY_FILE": provider.certificate, "STRATUS_PUSH_ALLOW_PRIVATE_ADDRESSES": "true"}
        super().__init__(os.path.join(place, "data"), "--admin", "127.0.0.1:0", *words, program=PROGRAM,
                         log=open(os.path.join(place, "log"), "w"), settings=settings)
        self.token = open(self.facts["adminTokenFile"]).read().strip()
        self.admin = urllib.parse.urlsplit(self.facts["adminURL"]).netloc
        if provider is not None:
            done = subprocess.run([*provider.prepare(self.control_words()), "--container", self.container],
                                  capture_output=True, text=True)
            stratus.check(done.returncode == 0, done.stdout + done.stderr)

    def taken(self):
        """Pushes that a provider has accepted."""
        text = stratus.get(self.admin, "/metrics", self.token)[1]
        return sum(float(value) for value in re.findall(r'^stratus_push_sent_total{.*"accepted".*} (\S+)$', text, re.M))

    @property
    def cpu(self):
        return stratus.cpu_seconds(self.process.pid)

    @property
    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) * 1024


@functools.cache
def unverified():
    """One for all connections: each would read the system's authorities."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Line:
    """One connection, as bare as it can be."""

    async def open(self, node):
        context = unverified() if node.url.startswith("https") else None
        self.reader, self.writer = await asyncio.open_connection(node.host, node.port, ssl=context)
        return self

    def send(self, target, body=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.writer.write(f"{'GET' if body is None else 'POST'} {target} HTTP/1.1\r\nHost: localhost\r\n"
                          f"Content-Length: {len(text)}\r\n\r\n".encode() + text)

    async def receive(self):
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        return int(head.split()[1]), await self.reader.readexactly(length)

    async def ask(self, target, body=None):
        for _ in range(100):
            self.send(target, body)
            status, answer = await self.receive()
            if status < 429:
                break
            await asyncio.sleep(0.1)
        stratus.check(status == 200, f"{target}: {status} {answer[:300]}")
        return json.loads(answer)


async def side_by_side(node, count, work, width=64):
    """Runs `work(line, number)` for each number, over several connections."""
    numbers = iter(range(count))

    async def go():
        line = await Line().open(node)
        for number in numbers:
            await work(line, number)
        line.writer.close()

    await asyncio.gather(*(go() for _ in range(width)))


def saved(record_type="Book", name="a", **fields):
    return {"operations": [{"operationType": "forceReplace", "record": {
        "recordType": record_type, "recordName": name, "fields": {key: {"value": value} for key, value in fields.items()}}}]}


def subscription(filters=()):
    return {"operations": [{"operationType": "create", "subscription": {
        "subscriptionID": "books", "subscriptionType": "query", "query": {"recordType": "Book", "filterBy": list(filters)},
        "firesOn": ["create", "update"], "notificationInfo": {"alertBody": "A book"}}}]}


def percentile(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] if times else float("nan")


def device_path(node, operation, user):
    return node.path(operation, user, database="").replace("/database/1/", "/device/1/").replace("//", "/")


def load(node, seconds, target, body, *words):
    """h2load with one request again and again. Returns its requests in a second, its failures, and the node's CPU seconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(json.dumps(body).encode())
        file.flush()
        before = node.cpu
        done = subprocess.run(["h2load", "-D", str(seconds), "-d", file.name, *words, node.url + target],
                              capture_output=True, text=True)
        cpu = node.cpu - before
    good = int(re.search(r"status codes: (\d+) 2xx", done.stdout)[1])
    failed = int(re.search(r"(\d+) failed", done.stdout)[1])
    return good / seconds, failed, cpu, good


# --- What is measured


async def others(node, times, ended):
    """Somebody else's look-ups, one every 10 ms."""
    line, target = await Line().open(node), node.path("records/lookup", "stratus-user-other")
    while not ended.is_set():
        begun = time.perf_counter()
        await line.ask(target, {"records": [{"recordName": "none"}]})
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(0.01)


async def fan_out(node, count, provider):
    save = node.path("records/modify", "stratus-user-writer", database="public")
    line = await Line().open(node)
    await line.ask(save, saved(n=1))
    begun = time.monotonic()

    async def enrol(line, number):
        user = f"stratus-user-s{number}"
        await line.ask(device_path(node, "tokens/register", user), provider.device(number))
        answer = await line.ask(node.path("subscriptions/modify", user, database="public"), subscription())
        stratus.check("serverErrorCode" not in answer["subscriptions"][0], answer)

    await side_by_side(node, count, enrol)
    made = time.monotonic() - begun
    quiet, busy = [], []
    ended = asyncio.Event()
    asyncio.get_running_loop().call_later(3, ended.set)
    await others(node, quiet, ended)
    # The first connection rested for so long that the node has closed it.
    line = await Line().open(node)
    sent, cpu = node.taken(), node.cpu
    ended = asyncio.Event()
    beside = asyncio.ensure_future(others(node, busy, ended))
    begun = time.monotonic()
    await line.ask(save, saved(n=2))
    done, last = 0, begun
    while done < count and time.monotonic() < begun + 150:
        await asyncio.sleep(0.25)
        now = await asyncio.to_thread(node.taken) - sent
        if now > done:
            done, last = now, time.monotonic()
        elif time.monotonic() > last + 20:
            break
    took, used = last - begun, node.cpu - cpu
    ended.set()
    await beside
    print(f"{count} subscribers with a device each, made in {made:.0f} s")
    print(f"one change: {done:.0f} pushes in {took:.1f} s, {done / took:.0f} a second, {used:.1f} s of CPU: "
          f"{done / used:.0f} a second and core, settling included")
    print(f"others' look-ups: p50 {percentile(quiet, 0.5) * 1e3:.2f} ms, p99 {percentile(quiet, 0.99) * 1e3:.2f} ms before; "
          f"p50 {percentile(busy, 0.5) * 1e3:.2f} ms, p99 {percentile(busy, 0.99) * 1e3:.2f} ms meanwhile")


async def saves(node, count, seconds):
    target = node.path("records/modify", "stratus-user-writer", database="public")
    line = await Line().open(node)
    await line.ask(target, saved(n=1))
    words = ["--h1", "-c", "16"]
    load(node, 2, target, saved(n=1), *words)
    alone = [load(node, seconds, target, saved(n=1), *words)[0] for _ in range(2)]
    never = {"fieldName": "n", "comparator": "EQUALS", "fieldValue": {"value": 999}}

    async def enrol(line, number):
        answer = await line.ask(node.path("subscriptions/modify", f"stratus-user-s{number}", database="public"),
                                subscription([never]))
        stratus.check("serverErrorCode" not in answer["subscriptions"][0], answer)

    begun = time.monotonic()
    await side_by_side(node, count, enrol)
    made = time.monotonic() - begun
    load(node, 2, target, saved(n=1), *words)
    beside = [load(node, seconds, target, saved(n=1), *words)[0] for _ in range(2)]
    print(f"{count} subscriptions made in {made:.0f} s")
    print("saves a second alone " + ", ".join(f"{one:.0f}" for one in alone) + "; beside them "
          + ", ".join(f"{one:.0f}" for one in beside) + f": {max(beside) / max(alone):.2f} of it")


async def polls(node, count):
    paths = []

    async def make(line, number):
        user = f"stratus-user-p{number // 100}"
        answer = await line.ask(device_path(node, "tokens/create", user), {"apnsEnvironment": "development"})
        paths.append(answer["webcourierURL"].split("/", 3)[3])

    await side_by_side(node, count, make)
    await asyncio.sleep(5)
    before, lines = node.memory, []
    for start in range(0, count, 200):
        for path in paths[start:start + 200]:
            line = await Line().open(node)
            line.send("/" + path)
            lines.append(line)
        await asyncio.sleep(0.02)
    await asyncio.sleep(20)
    cpu = node.cpu
    await asyncio.sleep(10)
    cpu = (node.cpu - cpu) / 10
    held = sum(1 for line in lines if not line.reader.at_eof() and not line.reader._buffer)
    print(f"{held} polls held of {count}: memory {before / 1e6:.0f} MB before, {node.memory / 1e6:.0f} MB while, "
          f"{(node.memory - before) / max(1, held) / 1e3:.1f} KB each; {cpu * 100:.0f} % of a core while nothing changes")


async def streams(node, count):
    user = "stratus-user-s"
    line, save, zone = await Line().open(node), node.path("records/modify", user), {"zoneName": "shelf"}
    await line.ask(node.path("zones/modify", user), {"operations": [{"operationType": "create", "zone": {"zoneID": zone}}]})
    await line.ask(save, {"zoneID": zone, **saved(n=0)})
    heard, lines = [0] * count, []
    target = node.path("live", user) + "&zone=shelf&syncToken="

    async def follow(number):
        stream = await Line().open(node)
        lines.append(stream)
        stream.writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        while text := await stream.reader.readline():
            heard[number] += text.startswith(b"event: changes")

    before = node.memory
    followers = [asyncio.ensure_future(follow(number)) for number in range(count)]
    await asyncio.sleep(5)
    stratus.check(all(heard), f"{heard.count(0)} streams were not begun")
    first, cpu, seconds = sum(heard), node.cpu, 20
    for number in range(seconds):
        await line.ask(save, {"zoneID": zone, **saved(n=number + 1)})
        await asyncio.sleep(1)
    cpu = (node.cpu - cpu) / seconds
    print(f"{count} streams of one zone, a save a second: {(sum(heard) - first) / seconds / count:.2f} events for each save and stream, "
          f"{cpu * 100:.0f} % of a core, {(node.memory - before) / 1e6:.0f} MB more")
    for stream in lines:
        stream.writer.close()
    await asyncio.gather(*followers, return_exceptions=True)


def http2(node, seconds):
    target = node.path("records/lookup", "stratus-user-a")
    body = {"records": [{"recordName": "none"}]}
    rows = {}
    for name, words in (("HTTP/1.1", ["--h1"]), ("HTTP/2", [])) * 2:
        load(node, 1, target, body, "-c", "16", "-m", "16", *words)
        rate, failed, cpu, good = load(node, seconds, target, body, "-c", "16", "-m", "16", *words)
        rows.setdefault(name, []).append(cpu / good)
        print(f"{name}: {rate:.0f} requests a second, {failed} failed, {cpu / good * 1e6:.1f} µs of CPU each")
    print(f"HTTP/2 takes {min(rows['HTTP/2']) / min(rows['HTTP/1.1']):.2f} of the CPU of HTTP/1.1")


async def latency(node, relay, rate, seconds, count):
    firing = node.path("records/modify", "stratus-user-s", database="private")
    idle = node.path("records/modify", "stratus-user-idle", database="public")
    line = await Line().open(node)
    await line.ask(firing, saved(n=1))
    await line.ask(idle, saved("Other", n=1))
    await line.ask(device_path(node, "tokens/register", "stratus-user-s"),
                   {"apnsEnvironment": "development", "apnsToken": "ab" * 32})
    await line.ask(node.path("subscriptions/modify", "stratus-user-s"), subscription())
    words = ["--h1", "-c", "16"]
    if rate == 0:
        load(node, 2, idle, saved("Other", n=1), *words)
        peak = load(node, seconds, idle, saved("Other", n=1), *words)[0]
        rate = peak / 2
        print(f"peak of saves {peak:.0f} a second")

    def measure():
        after, whole, saver = [], [], node.connect()
        for number in range(count + 5):
            relay.arrived.clear()
            begun = time.perf_counter()
            stratus.post(saver, firing, saved(name=f"m{number}", n=number))
            answered = time.perf_counter()
            stratus.check(relay.arrived.wait(10), "a push did not come")
            # The first ones open the connection.
            if number >= 5:
                after.append(max(0, relay.at - answered) * 1e3)
                whole.append((relay.at - begun) * 1e3)
            # The answer, and the settlement behind it.
            time.sleep(0.02)
        return after, whole

    quiet = await asyncio.to_thread(measure)
    loader = threading.Thread(target=lambda: print(
        f"beside {load(node, seconds * 3, idle, saved('Other', n=1), *words, '--rps', str(max(1, round(rate / 16))))[0]:.0f} "
        "saves a second:"))
    loader.start()
    await asyncio.sleep(1)
    busy = await asyncio.to_thread(measure)
    loader.join()
    for name, (after, whole) in (("idle", quiet), ("half the peak", busy)):
        print(f"{name}, {len(whole)} saves, until the push arrives: from the save's answer p50 {percentile(after, 0.5):.1f} ms, "
              f"p99 {percentile(after, 0.99):.1f} ms; from its request p50 {percentile(whole, 0.5):.1f} ms, "
              f"p99 {percentile(whole, 0.99):.1f} ms")


def across(place, count):
    cluster = stratus.Cluster(os.path.join(place, "cluster"), PROGRAM).up("--partitions", "16")
    try:
        user, saver = "stratus-user-a", cluster.connect(0)

        def ask(operation, body):
            for _ in range(100):
                status, answer = cluster.post(saver, operation, user, body)
                if status < 429:
                    break
                time.sleep(0.1)
            stratus.check(status == 200, f"{operation}: {status} {answer}")
            return answer

        ask("records/modify", saved(n=0))
        ask("subscriptions/modify", subscription())
        for node in range(3):
            made = ask("tokens/create", {"apnsEnvironment": "development"})
            target, line = "/" + made["webcourierURL"].split("/", 3)[3], cluster.connect(node)
            after, whole = [], []

            def poll():
                line.request("GET", target)
                text = line.getresponse().read()
                told.append((time.perf_counter(), text))

            for number in range(count + 5):
                told = []
                waiting = threading.Thread(target=poll)
                waiting.start()
                time.sleep(0.03)
                begun = time.perf_counter()
                ask("records/modify", saved(n=number + 1))
                answered = time.perf_counter()
                waiting.join(10)
                stratus.check(told and b"books" in told[0][1], f"a poll was not told: {told}")
                if number >= 5:
                    after.append(max(0, told[0][0] - answered) * 1e3)
                    whole.append((told[0][0] - begun) * 1e3)
            print(f"saved at node 1, polled at node {node + 1}, {count} saves: from the save's answer p50 "
                  f"{percentile(after, 0.5):.1f} ms, p99 {percentile(after, 0.99):.1f} ms; from its request p50 "
                  f"{percentile(whole, 0.5):.1f} ms, p99 {percentile(whole, 0.99):.1f} ms", flush=True)
    finally:
        cluster.run("down")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["fan-out", "saves", "polls", "streams", "http2", "latency", "across"])
    parser.add_argument("--subscribers", type=int, default=20_000)
    parser.add_argument("--polls", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--saves", type=int, default=300)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--web", action="store_true")
    options = parser.parse_args()
    stratus.built(PROGRAM)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with tempfile.TemporaryDirectory() as place:
        if options.what == "across":
            return across(place, options.saves)
        kind = WebPush if options.web else Provider
        provider = kind(place) if options.what in ("fan-out", "latency") else None
        relay = None
        if options.what == "latency":
            relay = Relay(provider.port)
            provider.url = f"https://localhost:{relay.port}"
        node = Node(place, *(["--tls"] if options.tls or options.what == "http2" else []), provider=provider)
        try:
            if options.what == "fan-out":
                asyncio.run(fan_out(node, options.subscribers, provider))
            elif options.what == "saves":
                asyncio.run(saves(node, options.subscribers, options.seconds))
            elif options.what == "polls":
                asyncio.run(polls(node, options.polls))
            elif options.what == "streams":
                asyncio.run(streams(node, options.streams))
            elif options.what == "http2":
                http2(node, options.seconds)
            else:
                asyncio.run(latency(node, relay, options.rate, options.seconds, options.saves))
        finally:
            node.kill()
            if provider is not None:
                provider.kill()


main()
