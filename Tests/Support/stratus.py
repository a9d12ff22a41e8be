"""What scripts that run real nodes have in common: nodes for development, configured nodes, clusters, and requests to them.

A script adds this folder to `sys.path`, imports what it needs, and keeps only what is its own, often in a subclass.
"""
import http.client, json, os, signal, socket, subprocess, sys, time, urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("STRATUS_BINARY", os.path.join(ROOT, ".build/debug/stratus"))
RELEASE = os.environ.get("STRATUS_RELEASE", os.path.join(ROOT, ".build/release"))
CONTAINER = "iCloud.org.example.stratus"
TICK = os.sysconf("SC_CLK_TCK")
# Places of a node's ports in the file `ports` of Deploy/cluster.
CLIENT, ADMIN, PEER = range(3)


# --- Saying how it goes


def step(name, ok, detail=""):
    """Prints a line for a step, and ends the script if it failed."""
    print(f"{'PASS' if ok else 'FAIL'} {name}{': ' + str(detail) if detail else ''}", flush=True)
    if not ok:
        sys.exit(1)


def check(holds, text):
    """Ends the script with the text unless it holds."""
    if not holds:
        raise SystemExit(f"FAILED: {text}")


def wait(condition, seconds, pause=0.2):
    """Asks until the condition holds. Returns its last answer, which is false if the time was not enough."""
    end = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return answer


# --- Programs and processes


def built(program=BINARY):
    """Returns the program, or ends the script if it is not there."""
    if not os.access(program, os.X_OK):
        sys.exit(f"no program at {program}: build first")
    return program


def outcome(*words, **options):
    """Runs a program. Returns its status and all that it printed, the errors last."""
    done = subprocess.run(words, capture_output=True, text=True, **options)
    return done.returncode, done.stdout + done.stderr


def control_words(url, token_file, program=BINARY):
    """The command line of the `stratusctl` beside a program, at the administrators' URL of a node."""
    return [os.path.join(os.path.dirname(program), "stratusctl"), "--node", url, "--token-file", str(token_file)]


def make_certificates(program, directory, names, *words):
    """Makes certificates for nodes of these names; `names` has commas."""
    subprocess.run([program, "cluster", "certificates", "--directory", str(directory), "--nodes", names, *words],
                   check=True, capture_output=True)


def is_running(pid):
    """Whether the process has not ended. One that nobody has asked about yet has ended too."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def cpu_seconds(pid):
    """User and system time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def free_ports(count):
    """Returns ports of the loopback that nobody listens at, and that no other script was given lately."""
    program = os.path.join(ROOT, "Deploy/free-ports")
    return [int(port) for port in subprocess.run([program, str(count)], check=True, stdout=subprocess.PIPE).stdout.split()]


def free_port():
    return free_ports(1)[0]


# --- Requests


def path(operation, token, user, container=CONTAINER, database="private"):
    """The path of an operation, with an API token and a web-auth token."""
    query = urllib.parse.urlencode({"ckAPIToken": token, "ckWebAuthToken": user})
    return f"/database/1/{container}/development/{database}/{operation}?{query}"


def post_text(connection, target, body, headers={}):
    """Returns the status and the text of an answer. The connection stays open."""
    connection.request("POST", target, body if isinstance(body, bytes) else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def post(connection, target, body, headers={}):
    """Returns the status and the JSON of an answer. The connection stays open."""
    status, text = post_text(connection, target, body, headers)
    return status, json.loads(text)


def ask_once(method, address, target, body=None, token=None, timeout=5):
    """Returns the status and the text of an answer, over a connection of its own. The token is an administrator's."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request(method, target, body, {"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def get(address, target, token=None, timeout=5):
    """Returns the status and the text of a page."""
    return ask_once("GET", address, target, None, token, timeout)


def is_ready(url, timeout=5):
    """Whether `/readyz` of the clients' URL says so."""
    try:
        return get(urllib.parse.urlsplit(url).netloc, "/readyz", timeout=timeout)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


# --- Nodes


class Process:
    """A program that was started, or not yet."""

    process = None

    @property
    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=60):
        """Asks it to end. Returns its status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


class Node(Process):
    """`stratus dev`. What it prints when it is ready is in `facts`."""

    def __init__(self, data, *words, program=BINARY, listen="127.0.0.1:0", log=subprocess.DEVNULL, settings={}, before=None):
        """Starts it with more words, and with settings as variables. `before` runs in the child before the program."""
        self.process = subprocess.Popen(
            [program, "dev", "--data", data, "--listen", listen, "--json", *words], stdout=subprocess.PIPE, stderr=log,
            text=True, env={**os.environ, **settings}, preexec_fn=before)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the node did not start: exit {self.process.wait()}")
        self.facts = json.loads(line)
        self.url, self.api_token, self.container = self.facts["url"].rstrip("/"), self.facts["apiToken"], self.facts["container"]
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def path(self, operation, user="development", container=None, database="private"):
        return path(operation, self.api_token, user, container or self.container, database)

    def control_words(self):
        """The command line of `stratusctl` at it, if it has an administrators' listener."""
        return control_words(self.facts["adminURL"], self.facts["adminTokenFile"], self.process.args[0])


class Server(Process):
    """`stratus serve`, with a configuration of its own. Its log, in JSON, says where it listens."""

    def __init__(self, data, log, program=BINARY):
        self.data, self.log, self.program = str(data), str(log), program

    def configure(self, path, settings):
        """Writes a configuration: these settings, and those that every node here has."""
        with open(path, "w") as file:
            json.dump({"dataDirectory": self.data, "log": {"format": "json"}, **settings}, file)
        return str(path)

    @staticmethod
    def member(name, certificates, secret=None, **more):
        """The section of a node that belongs to a cluster, whose certificates are in a directory."""
        return {"name": name, "secretFile": str(secret or f"{certificates}/secret"),
                "tls": {"certificateFile": f"{certificates}/{name}.pem", "keyFile": f"{certificates}/{name}.key",
                        "authorityFile": f"{certificates}/authority.pem"}, **more}

    def serve(self, path):
        """Starts it, without waiting for anything."""
        with open(self.log, "ab") as log:
            return subprocess.Popen([self.program, "serve", "--config", path], stdout=log, stderr=log)

    def address(self, text):
        """Where it listens for "clients" or for "administrators", as its log says."""
        def found():
            with open(self.log) as log:
                lines = [json.loads(line) for line in log if line.startswith("{")]
            return next((line["url"] for line in lines if line.get("text") == text), None) or self.process.poll() is not None
        address = wait(found, 40, 0.05)
        return address if isinstance(address, str) else self.fail("did not start")

    def wait_ready(self):
        """Waits until it is ready, and learns where it listens."""
        self.url, self.admin = self.address("clients"), self.address("administrators")
        if not wait(lambda: is_ready(self.url), 40, 0.05):
            self.fail("is not ready")

    def fail(self, what):
        with open(self.log) as log:
            sys.exit(f"FAIL: a node {what}: {log.read()[-800:]}")

    def control_words(self, token_file=None):
        """The command line of `stratusctl` at it."""
        return control_words(self.admin, token_file or f"{self.data}/admin.token", self.program)

    def control(self, *words, given=None):
        return subprocess.run([*self.control_words(), *words], input=given, capture_output=True, text=True)

    def admin_token(self):
        with open(f"{self.data}/admin.token") as file:
            return file.read().strip()


class Cluster:
    """Nodes that Deploy/cluster runs, numbered from 0 as their URLs are."""

    container = CONTAINER
    # Seconds that Deploy/cluster may take for a command; None for any time.
    patience = None

    def __init__(self, directory, program=None, settings={}):
        """Starts nothing yet. Without a program Deploy/cluster chooses, and builds it. Settings are variables of the nodes."""
        self.directory = directory
        self.environment = {**os.environ, **settings, **({"STRATUS_BINARY": program} if program else {})}

    def up(self, *words):
        """Starts the nodes. Returns itself."""
        self.facts = json.loads(self("up", "--json", *words))
        self.addresses = [url.split("//")[1].rstrip("/") for url in self.facts["urls"]]
        return self

    def run(self, *words):
        """Deploy/cluster, which may fail."""
        return subprocess.run([os.path.join(ROOT, "Deploy/cluster"), *words, "--directory", self.directory],
                              capture_output=True, text=True, env=self.environment, timeout=self.patience)

    def __call__(self, *words):
        """Deploy/cluster, which must not fail. Returns what it prints."""
        done = self.run(*words)
        if done.returncode != 0:
            self.fail(f"Deploy/cluster {' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout

    def fail(self, text):
        sys.exit(text)

    # --- Nodes

    def index(self, node):
        """The place of a node, counted from 0. A script that names nodes otherwise says so here."""
        return node

    def number(self, node):
        """As Deploy/cluster numbers it."""
        return str(self.index(node) + 1)

    def home(self, node):
        return f"{self.directory}/node-{'abcdefghi'[self.index(node)]}"

    def pid(self, node):
        with open(f"{self.home(node)}/pid") as file:
            return int(file.read())

    def port(self, node, which):
        with open(f"{self.directory}/ports") as file:
            return int(file.read().split()[3 * self.index(node) + which])

    def log(self, node):
        with open(f"{self.home(node)}/log", errors="replace") as file:
            return file.read()

    def kill(self, node):
        os.kill(self.pid(node), signal.SIGKILL)

    def start(self, node):
        self("start", self.number(node))

    def rejoin(self, node):
        """Starts a node that was removed, and has no data directory any more: it joins anew under its name."""
        home, name = self.home(node), "abcdefghi"[self.index(node)]
        for kind in ("pem", "key"):
            os.remove(f"{self.directory}/certificates/{name}.{kind}")
        make_certificates(self.program, f"{self.directory}/certificates", name)
        with open(f"{home}/join.token", "w") as file:
            file.write(self("control", "cluster", "join-token"))
        with open(f"{home}/stratus.json5") as file:
            text = file.read()
        # A founder's configuration lists the node itself.
        if "peers:" in text:
            address = text.split(f'"{name}@')[1].split('"')[0]
            text = text.replace("peers:", "join:").replace(f'"{name}@{address}", ', "").replace(f', "{name}@{address}"', "").replace(
                "secretFile:", f'joinTokenFile: "{home}/join.token",\n        address: "{address}",\n        secretFile:', 1)
            with open(f"{home}/stratus.json5", "w") as file:
                file.write(text)
        self.start(node)

    @property
    def program(self):
        """The program that the nodes run."""
        with open(f"{self.directory}/binary") as file:
            return file.read().strip()

    # --- Clients and administrators

    def connect(self, node, timeout=40):
        return http.client.HTTPConnection(self.addresses[self.index(node)], timeout=timeout)

    def path(self, operation, user, container=None, database="private"):
        return path(operation, self.facts["apiToken"], user, container or self.container, database)

    def post(self, connection, operation, user, body, headers={}):
        return post(connection, self.path(operation, user), body, headers)

    def admin(self, node):
        """The address of the administrators' listener."""
        return f"127.0.0.1:{self.port(node, ADMIN)}"

    def admin_token(self, node):
        with open(f"{self.home(node)}/data/admin.token") as file:
            return file.read().strip()

    def page(self, node, target, timeout=5):
        """Status and text of an administrators' page of a node."""
        return get(self.admin(node), target, self.admin_token(node), timeout)

    def define(self, container, schema):
        """Gives a container's development environment a schema."""
        status, text = ask_once("PUT", self.admin(0), f"/v1/containers/{container}/environments/development/schema", schema,
                                self.admin_token(0), timeout=10)
        if status >= 300:
            self.fail(f"the schema of {container} was refused: {status} {text}")

    def ready(self, node):
        """Status and words of the administrators' `/readyz`."""
        return get(self.admin(node), "/readyz")

    def control_words(self, node):
        """The command line of `stratusctl` at a node."""
        return control_words(f"http://{self.admin(node)}", f"{self.home(node)}/data/admin.token", self.program)

    def lost(self, node, acknowledged):
        """Of users and names of records whose text is three times their name: those that are not there through a node."""
        connection, lost = self.connect(node), []
        for user in sorted({user for user, _ in acknowledged}):
            names = [name for owner, name in acknowledged if owner == user]
            for start in range(0, len(names), 200):
                part = names[start:start + 200]
                # This is about what is kept. Who leads may be settled anew while a node joins.
                end = time.monotonic() + 20
                while True:
                    status, body = self.post(connection, "records/lookup", user,
                                             {"records": [{"recordName": name} for name in part]})
                    if status == 200:
                        break
                    if time.monotonic() > end:
                        self.fail(f"the lookup through node {self.number(node)} failed: {status} {body}")
                    time.sleep(0.2)
                lost += [(self.number(node), user, name, record) for name, record in zip(part, body["records"], strict=True)
                         if record.get("fields", {}).get("text", {}).get("value") != name * 3]
        return lost
