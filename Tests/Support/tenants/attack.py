"""One way to ask for much: what it makes ready, and what it sends again and again."""
import http.client, json, os, sys, threading, time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from stratus import check

HOSTILE, HONEST = "iCloud.org.example.hostile", "iCloud.org.example.honest"
# What a node answers to somebody who asks for too much.
BUSY = (429, 503)


class Attack:
    """An attack. A subclass says what is its own; its name is the key in the list of known excesses."""

    name = ""
    # The statuses that are documented for it, beside those of `BUSY`.
    expected = (200,)
    # Seconds that it is sent for, and that making it ready takes at about.
    seconds, cost = 1.0, 1.0
    # Clients that send it at the same time.
    clients = 1
    # It leaves so much behind that what comes next has nodes of its own.
    is_last = False
    # A drawn sample has it smaller, so that it may keep within bounds there.
    shrinks = False
    # Where it runs: on one node, on three.
    places = (1, 3)
    # It is also tried whether what it has begun goes on after kill -9.
    outlives = False

    def __init__(self, stand, is_long):
        self.stand, self.is_long = stand, is_long
        self.user = "stratus-user-" + "".join(filter(str.isalnum, self.name))[:32]
        self.count, self.longest, self.wrong, self.detail = 0, 0.0, None, None
        self.lock = threading.Lock()

    def prepare(self):
        """Makes ready what the attack needs."""

    def begin(self):
        """Is called when the attack begins, before its clients."""

    def send(self, client, turn):
        """Sends one request. Returns the status and what was answered."""
        raise NotImplementedError

    def finish(self):
        """Lets go of what it holds. Nothing is measured any more."""

    # --- Running

    def run(self, until):
        """Sends until the time is over. Returns the threads that do."""
        self.begin()
        threads = [threading.Thread(target=self.loop, args=(number, until), daemon=True) for number in range(self.clients)]
        for thread in threads:
            thread.start()
        return threads

    def loop(self, number, until):
        client, turn = Client(self.stand.gateways[number % len(self.stand.gateways)], self.user), 0
        # Each client has an answer, however long it takes.
        while turn == 0 or time.monotonic() < until:
            begun = time.monotonic()
            try:
                status, answer = self.send(client, turn)
            except (OSError, http.client.HTTPException) as error:
                return self.note_wrong(f"no answer: {error!r}")
            with self.lock:
                self.count += 1
                self.longest = max(self.longest, time.monotonic() - begun)
            if status not in self.expected + BUSY:
                return self.note_wrong(f"{status} {str(answer)[:200]}")
            if status in BUSY:
                time.sleep(0.02)
            turn += 1

    def note_wrong(self, text):
        with self.lock:
            self.wrong = self.wrong or text


class Client:
    """A user at one node, over a connection that stays open."""

    def __init__(self, gateway, user, container=HOSTILE, timeout=60):
        self.gateway, self.user, self.container, self.timeout = gateway, user, container, timeout
        self.connection = gateway.connect(timeout)

    def ask(self, method, target, body=None, headers={}):
        """Returns the status and the bytes of an answer."""
        self.connection.request(method, target, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def post(self, target, body):
        """Returns the status and the JSON of an answer."""
        status, text = self.ask("POST", target, body if isinstance(body, bytes) else json.dumps(body).encode())
        return status, json.loads(text) if text.startswith(b"{") else text.decode(errors="replace")

    def records(self, operation, body, database="private"):
        return self.post(self.gateway.records(operation, self.user, self.container, database), body)

    def documents(self, operation, body):
        return self.post(self.gateway.documents(operation, self.user, self.container), body)

    def save(self, type, records, zone=None, database="private"):
        """Saves records by name, which must work."""
        body = {"operations": [{"operationType": "forceUpdate", "record": {
            "recordType": type, "recordName": name, "fields": {key: {"value": value} for key, value in fields.items()}}}
            for name, fields in records]}
        if zone:
            body["zoneID"] = {"zoneName": zone}
        self.must("records/modify", lambda: self.records("records/modify", body, database))

    def make_zones(self, names):
        for start in range(0, len(names), 200):
            self.must("zones/modify", lambda: self.records("zones/modify", {"operations": [
                {"operationType": "create", "zone": {"zoneID": {"zoneName": name}}} for name in names[start:start + 200]]}))

    def must(self, what, ask):
        """Asks until the answer is no longer that the node has no time. It must be a good one."""
        for _ in range(100):
            status, answer = ask()
            if status not in BUSY:
                break
            time.sleep(0.1)
        check(status in (200, 201, 204, 207) and "serverErrorCode" not in str(answer), f"{what}: {status} {str(answer)[:300]}")
        return answer
