"""The nodes under attack: one or three, and what is measured of them from outside."""
import base64, http.client, json, os, signal, subprocess, sys, time, urllib.parse

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import stratus
from stratus import check, is_running
from .attack import HOSTILE, HONEST

SCHEMA = """DEFINE SCHEMA
    RECORD TYPE L (
        "___recordID" REFERENCE QUERYABLE,
        s LIST<STRING> QUERYABLE,
        t STRING QUERYABLE SORTABLE SEARCHABLE,
        u STRING,
        GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world"
    );
    RECORD TYPE Secret (
        n INT64 QUERYABLE SORTABLE,
        GRANT READ, WRITE TO "_creator", GRANT CREATE TO "_icloud"
    );
"""
# Beside the defaults: logs that a program reads, a flood of HTTP/2 without TLS, and no push that leaves this machine.
SETTINGS = {"STRATUS_LOG_FORMAT": "json", "STRATUS_LOG_ACCESS": "false", "STRATUS_CLIENT_PLAIN_HTTP2": "true",
            "STRATUS_PUSH_ALLOW_PRIVATE_ADDRESSES": "true"}
# Where attacks are smaller, for want of time, a node has fewer places.
SMALL = {"STRATUS_LIMITS_HELD_REQUEST_COUNT_MAX": "2000", "STRATUS_LIMITS_LIVE_STREAM_COUNT_MAX": "400"}


class Gateway:
    """A node as a client sees it."""

    def __init__(self, url, token):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.token = parts.hostname, parts.port, token

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    @property
    def is_ready(self):
        return stratus.is_ready(self.url)

    def words(self, user):
        return urllib.parse.urlencode({"ckAPIToken": self.token, "ckWebAuthToken": user})

    def records(self, operation, user, container, database="private"):
        return stratus.path(operation, self.token, user, container, database)

    def documents(self, operation, user, container):
        return f"/documents/1/{container}/development/{operation}?{self.words(user)}"

    def key_values(self, operation, user, container):
        return f"/kvs/1/{container}/development/{operation}?{self.words(user)}"

    def device(self, operation, user, container):
        return f"/device/1/{container}/development/{operation}?{self.words(user)}"

    def dav(self, path, container):
        return f"/dav/{container}/development/{urllib.parse.quote(path)}"

    @staticmethod
    def sign(user):
        """Development users sign in by their name."""
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{user}".encode()).decode()}


class Stand:
    """Nodes, told apart by their places. Offsets say where in each log the present attack begins."""

    def open(self, control):
        """Defines both containers."""
        self.program_words = control
        for container in (HOSTILE, HONEST):
            self.import_schema(container, SCHEMA)
        self.start_memory, self.offsets = max(self.memory()), {}

    def control(self, *words, given=None):
        done = subprocess.run([*self.program_words, *words], input=given, capture_output=True, text=True)
        check(done.returncode == 0, f"stratusctl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def import_schema(self, container, text):
        path = os.path.join(self.place, "schema")
        with open(path, "w") as file:
            file.write(text)
        self.control("schema", "import", "--container", container, "--environment", "development", path)

    @property
    def all_are_ready(self):
        return all(gateway.is_ready for gateway in self.gateways)

    def lives(self):
        return all(is_running(pid) for pid in self.pids())

    # --- What is measured

    def begin(self):
        """From here on figures are those of one attack."""
        self.offsets = {path: os.path.getsize(path) for path in self.logs()}
        for pid in self.pids():
            with open(f"/proc/{pid}/clear_refs", "w") as file:
                file.write("5")

    def lines(self, text):
        """The lines of this attack that say so."""
        found = []
        for path in self.logs():
            with open(path, "rb") as log:
                log.seek(self.offsets.get(path, 0))
                for line in log:
                    if text.encode() in line and line.endswith(b"\n"):
                        found.append(json.loads(line))
        return [line for line in found if line["text"] == text]

    def pieces(self):
        """The longest piece by thread and work, in milliseconds."""
        longest = {}
        for line in self.lines("a long piece"):
            thread = line["thread"].rsplit("-", 1)[0] if line["thread"].startswith(("loop-", "sealing-")) else line["thread"]
            key = f"{thread}: {line['work']}"
            longest[key] = max(longest.get(key, 0), line["milliseconds"])
        return longest

    def stuck(self):
        return sorted({line["thread"].rsplit("-", 1)[0] for line in self.lines("a thread is stuck")})

    @property
    def measures_pieces(self):
        return any("pieces of work are measured" in open(path, errors="replace").read() for path in self.logs())

    def memory(self, name="VmRSS"):
        """MiB of each node, now or (VmHWM) at most since `begin`."""
        sizes = []
        for pid in self.pids():
            with open(f"/proc/{pid}/status") as file:
                sizes.append(next(int(line.split()[1]) for line in file if line.startswith(name + ":")) / 1024)
        return sizes

    def processor(self):
        return sum(stratus.cpu_seconds(pid) for pid in self.pids())

    def wait_idle(self, seconds):
        """Waits until the nodes do nothing worth mentioning. Returns how long that took."""
        begun = time.monotonic()
        while True:
            before, since = self.processor(), time.monotonic()
            time.sleep(0.5)
            share = (self.processor() - before) / (time.monotonic() - since) / len(self.pids())
            if share < 0.1:
                return since - begun
            if time.monotonic() > begun + seconds:
                return time.monotonic() - begun


class One(Stand):
    """One node alone."""

    size = 1

    def __init__(self, program, place):
        self.program, self.place = program, place
        self.log, self.listen = os.path.join(place, "log"), f"127.0.0.1:{stratus.free_port()}"
        self.start()
        self.gateways = [Gateway(self.node.facts["url"], self.node.facts["apiToken"])]
        self.open(self.node.control_words())

    def start(self):
        with open(self.log, "a") as log:
            self.node = stratus.Node(os.path.join(self.place, "data"), "--admin", "127.0.0.1:0", program=self.program,
                                     listen=self.listen, log=log, settings=SETTINGS)
        self.program_words = self.node.control_words()

    def pids(self):
        return [self.node.process.pid]

    def lives(self):
        return self.node.is_alive

    def logs(self):
        return [self.log]

    def kill_and_start(self):
        """Returns how long it takes until the node is ready."""
        begun = time.monotonic()
        self.node.kill()
        self.start()
        check(stratus.wait(lambda: self.all_are_ready, 60, 0.05), "the node is not ready after a kill")
        return time.monotonic() - begun

    def stop(self):
        """Returns how long it took, and what is wrong with it."""
        begun = time.monotonic()
        try:
            code = self.node.stop(30)
        except subprocess.TimeoutExpired:
            code = "none"
        return time.monotonic() - begun, None if code == 0 else f"status {code}"

    def end(self):
        if self.node.is_alive:
            self.node.kill()


class Three(Stand, stratus.Cluster):
    """A cluster of three."""

    size = 3

    def __init__(self, program, place):
        stratus.Cluster.__init__(self, os.path.join(place, "cluster"), program, settings=SETTINGS)
        self.place = place
        self.up("--partitions", "16")
        self.gateways = [Gateway(url, self.facts["apiToken"]) for url in self.facts["urls"]]
        self.peer_ports = [self.port(node, stratus.PEER) for node in range(3)]
        self.open(self.control_words(0))

    def pids(self):
        return [self.pid(node) for node in range(3)]

    def logs(self):
        return [f"{self.home(node)}/log" for node in range(3)]

    def kill_and_start(self):
        begun = time.monotonic()
        self.kill(0)
        self.start(0)
        check(stratus.wait(lambda: self.all_are_ready, 60, 0.05), "the cluster is not ready after a kill")
        return time.monotonic() - begun

    def stop(self):
        begun = time.monotonic()
        pids = self.pids()
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        stratus.wait(lambda: not any(is_running(pid) for pid in pids), 30, 0.05)
        left = [pid for pid in pids if is_running(pid)]
        return time.monotonic() - begun, f"{len(left)} nodes go on" if left else None

    def end(self):
        for pid in self.pids():
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
