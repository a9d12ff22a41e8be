"""Nodes to measure: one alone, or three of which another than the one asked leads. Filled before they are counted."""
import glob, json, os, random, re, subprocess, time, urllib.error, urllib.request
import callgrind, stratus

SCHEMA = b"""DEFINE SCHEMA RECORD TYPE Note (
    "___recordID" REFERENCE QUERYABLE, title STRING, body STRING, rating INT64 QUERYABLE SORTABLE,
    GRANT READ, CREATE, WRITE TO "_icloud");"""
TITLE, BODY = "a title of thirty letters or so", "x" * 300
RECORDS, ZONES, FILES = 2_000, 64, 200
# Functions that only one kind of thread calls.
MARKS = [("12NodeReplicasC4work", "storage"), ("9EventLoopC3run", "loop"), ("sqlite3WalCheckpoint", "checkpoints")]


def call(method, url, body=None, headers=None):
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.loads(answer.read() or b"null")


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


class Node:
    """One process, under callgrind if asked."""

    running = []

    def __init__(self, binary, arguments, directory, label, counted):
        self.prefix = os.path.join(directory, f"count-{label}")
        command = [binary, *arguments]
        if counted:
            command = ["valgrind", "--tool=callgrind", "--separate-threads=yes", "--dump-line=no", "--demangle=no",
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
        """Profiles by thread since the last `zero`."""
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
            profile = callgrind.read(path)
            name = next((name for mark, name in MARKS if any(mark in function for function in profile.costs)),
                        names.get(thread, f"thread {thread}"))
            threads.setdefault(name, callgrind.Profile()).add(profile)
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


def fill_documents(url, container, tokens):
    """A folder of files of 4 KiB."""
    def create(**items):
        call("POST", f"{url}/documents/1/{container}/development/items/modify{tokens}", {"device": "bench", "now": 1, **items})
    create(operations=[{"operation": "create", "kind": "folder", "path": "Documents", "name": "files"}])
    create(operations=[{"operation": "create", "kind": "file", "path": "Documents/files", "name": f"f{number:05d}",
                        "content": "eHh4" * 1365} for number in range(FILES)])


class One:
    """A node alone. It is filled without callgrind, and started again under it if it is to be counted."""

    def __init__(self, binary, directory, buckets=0, counted=True):
        self.directory, data = directory, os.path.join(directory, "data")
        arguments = ["dev", "--json", "--schema", "strict", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", data]
        if buckets:
            arguments += ["--placement", "zone", "--zone-buckets", str(buckets)]
        self.node = Node(binary, arguments, directory, "fill", counted=False)
        line = json.loads(self.node.process.stdout.readline())
        self.describe(line)
        admin = open(line["adminTokenFile"]).read().strip()
        call("PUT", f"{line['adminURL']}/v1/containers/{line['container']}/environments/development/schema", SCHEMA,
             {"Authorization": f"Bearer {admin}"})
        fill(self.url, self.base, self.tokens)
        fill_documents(self.url, line["container"], self.tokens)
        if counted:
            self.node.stop()
            self.node = Node(binary, arguments, directory, "one", counted=True)
            self.describe(json.loads(self.node.process.stdout.readline()))
        self.nodes = [self.node]

    def describe(self, line):
        self.base = f"/database/1/{line['container']}/development/private"
        self.files = f"/dav/{line['container']}/development/Documents/files"
        self.tokens = f"?ckAPIToken={line['apiToken']}&ckWebAuthToken=bench"
        self.url = line["url"].rstrip("/")
        self.port = int(self.url.rsplit(":", 1)[1])

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
