#!/usr/bin/env python3
"""Instructions of a request, counted by callgrind: the figure that judges a change of the request path.

    apt-get install valgrind
    swift build -c release --product stratus
    Tests/Benchmarks/instructions/run.py [--nodes 1|3|both] [--work lookup,save,…] [--runs 3] [--requests 600]
    Tests/Benchmarks/instructions/run.py --zone-buckets 16 --work sync,first-sync     # on one node, without budgets
    Tests/Benchmarks/instructions/run.py --check       # ends with 1 if a budget is exceeded by 5 % or more
    Tests/Benchmarks/instructions/run.py --write       # makes what was measured the budgets

Instructions of user code do not depend on what else the machine does, but for how many requests share a turn of a
loop. Thirty-two connections ask at once, after 300 requests to warm up. What the node does by itself in the same time
is counted too, and taken off. With three nodes, requests go to one that does not lead; all nodes are added up.

STRATUS_BINARY names another program. Every process started here is ended here.
"""
import argparse, glob, json, os, random, re, shutil, statistics, subprocess, sys, tempfile, time, urllib.error, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../Support"))
import stratus
from closed_loop import Connection, ask_all

BUDGETS = os.path.join(HERE, "budgets.json")
SCHEMA = b"""DEFINE SCHEMA RECORD TYPE Note (
    "___recordID" REFERENCE QUERYABLE, title STRING, body STRING, rating INT64 QUERYABLE SORTABLE,
    GRANT READ, CREATE, WRITE TO "_icloud");"""
TITLE, BODY = "a title of thirty letters or so", "x" * 300
CONNECTIONS, WARM_UP, RECORDS, ZONES = 32, 300, 2_000, 64
WORKS = {1: ["healthz", "lookup", "save", "create", "query", "batch", "sync", "first-sync"], 3: ["lookup", "save"]}
TOLERANCE = 1.05
# Functions that only one kind of thread calls.
MARKS = [("12NodeReplicasC4work", "storage"), ("9EventLoopC3run", "loop"), ("sqlite3WalCheckpoint", "checkpoints")]


def call(method, url, body=None, headers=None):
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.loads(answer.read() or b"null")


class Node:
    """One process, under callgrind if asked."""

    running = []

    def __init__(self, binary, arguments, directory, label, counted):
        self.prefix = os.path.join(directory, f"count-{label}")
        command = [binary, *arguments]
        if counted:
            command = ["valgrind", "--tool=callgrind", "--separate-threads=yes", "--dump-line=no",
                       f"--callgrind-out-file={self.prefix}", *command]
        self.log = open(os.path.join(directory, f"{label}.log"), "a")
        self.process = subprocess.Popen(["nice", "-n", "10", *command], stdout=subprocess.PIPE, stderr=self.log, text=True)
        Node.running.append(self)

    def control(self, *arguments):
        subprocess.run(["callgrind_control", *arguments, str(self.process.pid)], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)

    def zero(self):
        self.control("-z")

    def take(self):
        """Instructions by thread since the last `zero`."""
        for path in glob.glob(self.prefix + "*"):
            os.remove(path)
        self.control("-d", "taken")
        for _ in range(600):
            paths = glob.glob(self.prefix + ".*")
            time.sleep(0.3)
            if paths and all(os.path.getsize(p) for p in paths) and len(paths) == len(glob.glob(self.prefix + ".*")):
                break
        else:
            raise SystemExit("callgrind has not written its counts within three minutes")
        threads = {}
        names = self.thread_names()
        for path in paths:
            thread = int(path.rsplit("-", 1)[1])
            with open(path) as file:
                text = file.read()
            name = next((name for mark, name in MARKS if mark in text), names.get(thread, f"thread {thread}"))
            total = re.search(r"^totals: (\d+)", text, re.M)
            if total:
                threads[name] = threads.get(name, 0) + int(total[1])
        return threads

    def thread_names(self):
        """callgrind numbers threads in the order in which they were made, as the system does. Those that have ended keep their
        numbers there and are unknown here, so a name may be off by one: MARKS tell the important threads by what they do."""
        tasks = sorted(int(t) for t in os.listdir(f"/proc/{self.process.pid}/task"))
        names = {}
        for number, task in enumerate(tasks, 1):
            try:
                with open(f"/proc/{self.process.pid}/task/{task}/comm") as file:
                    names[number] = re.sub(r"[-. ]?\d+$", "", file.read().strip())
            except OSError:
                pass
        return names

    def stop(self):
        Node.running.remove(self)
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.log.close()


def fields(rating):
    return {"title": {"value": TITLE}, "body": {"value": BODY}, "rating": {"value": rating}}


def requests(base, tokens):
    """What each kind of work asks for: a path and a body each time."""
    draw = random.Random(7)
    save = json.dumps({"operations": [{"operationType": "forceUpdate", "record": {
        "recordType": "Note", "recordName": "first", "fields": {"body": {"value": BODY}}}}]})
    create = json.dumps({"operations": [{"operationType": "create", "record": {"recordType": "Note", "fields": fields(123)}}]})
    batch = json.dumps({"operations": [{"operationType": "create", "record": {"recordType": "Note", "fields": fields(n)}}
                                       for n in range(200)]})
    tokens_of_sync = {}

    def lookup():
        return f"{base}/records/lookup{tokens}", '{"records":[{"recordName":"r%06d"}]}' % draw.randrange(RECORDS)

    def query():
        return f"{base}/records/query{tokens}", json.dumps({
            "resultsLimit": 20, "query": {"recordType": "Note", "filterBy": [{
                "fieldName": "rating", "comparator": "GREATER_THAN_OR_EQUALS",
                "fieldValue": {"value": draw.randrange(900)}}], "sortBy": [{"fieldName": "rating"}]}})

    def sync():
        return f"{base}/changes/database{tokens}", json.dumps({"syncToken": tokens_of_sync["token"]})

    return {
        "healthz": lambda: ("/healthz", None), "lookup": lookup,
        "save": lambda: (f"{base}/records/modify{tokens}", save),
        "create": lambda: (f"{base}/records/modify{tokens}", create),
        "batch": lambda: (f"{base}/records/modify{tokens}", batch), "query": query, "sync": sync,
        "first-sync": lambda: (f"{base}/changes/database{tokens}", "{}"),
    }, tokens_of_sync


def fill(url, base, tokens):
    """The records and zones that requests ask for."""
    draw = random.Random(1)
    call("POST", f"{url}{base}/records/modify{tokens}", {"operations": [
        {"operationType": "forceUpdate", "record": {"recordType": "Note", "recordName": "first", "fields": fields(1)}}]})
    for start in range(0, RECORDS, 200):
        call("POST", f"{url}{base}/records/modify{tokens}", {"operations": [
            {"operationType": "create", "record": {"recordType": "Note", "recordName": f"r{n:06d}",
                                                   "fields": fields(draw.randrange(1000))}}
            for n in range(start, start + 200)]})
    call("POST", f"{url}{base}/zones/modify{tokens}", {"operations": [
        {"operationType": "create", "zone": {"zoneID": {"zoneName": f"zone{n}"}}} for n in range(ZONES)]})


class One:
    """A node alone, filled without callgrind first."""

    def __init__(self, binary, directory, buckets):
        self.directory, data = directory, os.path.join(directory, "data")
        arguments = ["dev", "--json", "--schema", "strict", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", data]
        if buckets:
            arguments += ["--placement", "zone", "--zone-buckets", str(buckets)]
        node = Node(binary, arguments, directory, "fill", counted=False)
        line = json.loads(node.process.stdout.readline())
        self.describe(line)
        admin = open(line["adminTokenFile"]).read().strip()
        call("PUT", f"{line['adminURL']}/v1/containers/{line['container']}/environments/development/schema", SCHEMA,
             {"Authorization": f"Bearer {admin}"})
        fill(line["url"], self.base, self.tokens)
        node.stop()
        self.node = Node(binary, arguments, directory, "one", counted=True)
        line = json.loads(self.node.process.stdout.readline())
        self.describe(line)
        self.nodes = [self.node]
        self.port = int(line["url"].rsplit(":", 1)[1])

    def describe(self, line):
        self.base = f"/database/1/{line['container']}/development/private"
        self.tokens = f"?ckAPIToken={line['apiToken']}&ckWebAuthToken=bench"
        self.url = line["url"]

    def settle(self):
        time.sleep(2)


class Three:
    """Three nodes, filled without callgrind first; node b leads everything, node a is asked."""

    def __init__(self, binary, directory):
        names = "abc"
        ports = stratus.free_ports(9)
        client, admin, peer = ports[:3], ports[3:6], ports[6:]
        certificates = os.path.join(directory, "certificates")
        stratus.make_certificates(binary, certificates, "a,b,c", "--days", "30")
        peers = ", ".join(f'"{n}@127.0.0.1:{p}"' for n, p in zip(names, peer))
        for place, name in enumerate(names):
            home = os.path.join(directory, name)
            os.makedirs(home)
            with open(os.path.join(home, "stratus.json5"), "w") as file:
                file.write(f"""{{ dataDirectory: "{home}/data", development: true, developmentSchema: "strict", loopCount: 1,
  client: {{ listen: ["127.0.0.1:{client[place]}"], allowPlain: true, allowDevelopment: true }},
  admin: {{ listen: "127.0.0.1:{admin[place]}" }},
  cluster: {{ name: "{name}", peers: [{peers}], secretFile: "{certificates}/secret", partitionCount: 16,
    tls: {{ certificateFile: "{certificates}/{name}.pem", keyFile: "{certificates}/{name}.key",
            authorityFile: "{certificates}/authority.pem" }} }},
  log: {{ access: false }} }}""")
        self.admin, self.port, self.url = f"http://127.0.0.1:{admin[0]}", client[0], f"http://127.0.0.1:{client[0]}"

        def start(counted):
            nodes = [Node(binary, ["serve", "--config", os.path.join(directory, name, "stratus.json5")], directory,
                          name if counted else f"fill-{name}", counted) for name in names]
            for port in client:
                if not stratus.wait(lambda: stratus.is_ready(f"http://127.0.0.1:{port}", timeout=60), 600, 0.5):
                    raise SystemExit(f"the node at port {port} is not ready within 600 s")
            return nodes

        self.nodes = start(counted=False)
        token = open(os.path.join(directory, "a/data/admin.token")).read().strip()
        self.headers = {"Authorization": f"Bearer {token}"}
        container = "iCloud.org.example.bench"
        wait(lambda: call("PUT", f"{self.admin}/v1/containers/{container}/environments/development/schema", SCHEMA,
                          self.headers) is not None or True, 120)
        self.base = f"/database/1/{container}/development/private"
        self.tokens = "?ckAPIToken=" + "a" * 64 + "&ckWebAuthToken=development"
        wait(lambda: fill(self.url, self.base, self.tokens) is None, 300)
        for node in self.nodes:
            node.stop()
        self.nodes = start(counted=True)
        self.settle()

    def settle(self):
        """Lets node b lead every partition."""
        for _ in range(180):
            try:
                cluster = call("GET", f"{self.admin}/v1/cluster", None, self.headers)
            except urllib.error.HTTPError:
                # On a busy machine the system partition may have no leader for a moment.
                time.sleep(1)
                continue
            leader = next(n["node"] for n in cluster["nodes"] if n["name"] == "b")
            others = [p["partition"] for p in cluster["partitions"]
                      if p["partition"] != "system" and p["leader"] != leader]
            if not others:
                return
            for partition in others:
                try:
                    call("POST", f"{self.admin}/v1/cluster/partitions/{partition}/leader", {"to": "b"}, self.headers)
                except urllib.error.HTTPError:
                    pass
            time.sleep(1)
        raise SystemExit("node b does not get to lead everything")


def wait(attempt, seconds):
    deadline = time.time() + seconds
    while True:
        try:
            if attempt():
                return
        except (OSError, urllib.error.URLError) as problem:
            if time.time() > deadline:
                raise SystemExit(f"not within {seconds} s: {problem}")
        time.sleep(0.5)


def measure(world, works, count):
    """Instructions of one request, by work and thread."""
    makers, sync = requests(world.base, world.tokens)
    connections = [Connection(world.port) for _ in range(CONNECTIONS)]
    result = {}
    for work in works:
        make = makers[work]
        number = max(CONNECTIONS, count // 10) if work in ("batch", "first-sync") else count
        if work == "sync":
            connections[0].ask(f"{world.base}/changes/database{world.tokens}", "{}")
            sync["token"] = json.loads(connections[0].answer())["syncToken"]
        ask_all(connections, make, min(WARM_UP, number))
        world.settle()
        idle = {}
        for node in world.nodes:
            node.zero()
        began = time.time()
        time.sleep(3)
        idle_seconds = time.time() - began
        for node in world.nodes:
            for name, value in node.take().items():
                idle[name] = idle.get(name, 0) + value / idle_seconds
        for node in world.nodes:
            node.zero()
        began = time.time()
        ask_all(connections, make, number)
        seconds = time.time() - began
        threads = {}
        for node in world.nodes:
            for name, value in node.take().items():
                threads[name] = threads.get(name, 0) + value
        for name in threads:
            threads[name] = max(0, threads[name] - idle.get(name, 0) * seconds) / number / 1_000
        result[work] = {name: value for name, value in threads.items() if value >= 0.1}
        print(f"  {work:11} {sum(threads.values()):8.0f}   {number} requests in {seconds:.0f} s", flush=True)
    for connection in connections:
        connection.socket.close()
    return result


def main():
    parser = argparse.ArgumentParser(description="Counts the instructions of requests under callgrind.")
    parser.add_argument("--nodes", choices=["1", "3", "both"], default="1")
    parser.add_argument("--work", help="kinds of work, separated by commas; all of them if left out")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--zone-buckets", type=int, default=0, help="place private databases zone by zone; without budgets")
    parser.add_argument("--check", action="store_true", help="end with 1 if a budget is exceeded by 5 %% or more")
    parser.add_argument("--write", action="store_true", help="make the medians the budgets")
    arguments = parser.parse_args()
    if not 1 <= arguments.runs <= 10 or not CONNECTIONS <= arguments.requests <= 10_000:
        parser.error(f"1 to 10 runs of {CONNECTIONS} to 10,000 requests")
    if arguments.zone_buckets and (arguments.write or arguments.check or arguments.nodes != "1"):
        parser.error("--zone-buckets is for one node, and has no budgets")
    for tool in ("valgrind", "callgrind_control"):
        if not shutil.which(tool):
            raise SystemExit(f"{tool} is missing: apt-get install valgrind")
    binary = os.environ.get("STRATUS_BINARY", os.path.join(stratus.RELEASE, "stratus"))
    budgets = json.load(open(BUDGETS))
    exceeded = []
    for count in [1, 3] if arguments.nodes == "both" else [int(arguments.nodes)]:
        works = [w for w in WORKS[count] if not arguments.work or w in arguments.work.split(",")]
        runs = []
        for run in range(arguments.runs):
            print(f"{count} node(s), run {run + 1} of {arguments.runs}, thousands of instructions a request", flush=True)
            directory = tempfile.mkdtemp(prefix="stratus-instructions-")
            try:
                world = One(binary, directory, arguments.zone_buckets) if count == 1 else Three(binary, directory)
                runs.append(measure(world, works, arguments.requests))
            finally:
                # Those too that were still being filled when something failed.
                for node in list(Node.running):
                    node.stop()
                shutil.rmtree(directory, ignore_errors=True)
        known = {} if arguments.zone_buckets else budgets.setdefault(str(count), {})
        print(f"\n| {count} node(s) | median | lowest to highest | budget | by thread, at the median |\n| --- | --- | --- | --- | --- |")
        for work in works:
            totals = sorted(sum(run[work].values()) for run in runs)
            median = statistics.median_low(totals)
            threads = next(run[work] for run in runs if sum(run[work].values()) == median)
            budget = known.get(work)
            if budget is None:
                exceeded.append(f"{work} on {count}: {median:.0f}, and no budget")
            elif median > budget * TOLERANCE:
                exceeded.append(f"{work} on {count}: {median:.0f}, budget {budget}")
            parts = ", ".join(f"{name} {value:.0f}" for name, value in sorted(threads.items(), key=lambda t: -t[1])[:6])
            print(f"| {work} | {median:.0f} | {totals[0]:.0f} to {totals[-1]:.0f} | {budget or ''} | {parts} |")
            if arguments.write:
                known[work] = round(median)
        print()
    if arguments.write:
        with open(BUDGETS, "w") as file:
            json.dump(budgets, file, indent=2)
            file.write("\n")
    for line in exceeded:
        print("over its budget:", line)
    sys.exit(1 if arguments.check and exceeded else 0)


if __name__ == "__main__":
    main()
