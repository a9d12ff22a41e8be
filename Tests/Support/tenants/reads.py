"""Other reads: feeds, look-ups, a first sync, records of others, answers that nobody takes."""
import socket, time

from .attack import Attack, Client
from .queries import HostileQuery


class SkippingFeed(HostileQuery):
    name, operation = "read: a feed that leaves out what it reads", "changes/zone"
    body = {"zones": [{"zoneID": {"zoneName": "many"}, "desiredRecordTypes": ["Other"]}]}


class LargeLookUps(HostileQuery):
    name, operation = "read: look-ups of 200 large records", "records/lookup"
    body = {"zoneID": {"zoneName": "many"}, "desiredKeys": [],
            "records": [{"recordName": f"wide-{number % 8}-{number // 8 % 8}"} for number in range(200)]}


class SlowReaders(HostileQuery):
    """Asks for 14 MB over many connections, and takes nothing of the answers."""

    name, seconds, cost, shrinks = "read: large answers that nobody takes", 3.0, 0.5, True

    def begin(self):
        self.held, request = [], self.request()
        for _ in range(110 if self.is_long else 40):
            gateway = self.stand.gateways[0]
            one = socket.create_connection((gateway.host, gateway.port))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.sendall(request)
            self.held.append(one)

    def request(self):
        import json
        gateway = self.stand.gateways[0]
        body = json.dumps({"zoneID": {"zoneName": "many"}, "records": [
            {"recordName": f"wide-{number % 8}-{number // 8}"} for number in range(48)]}).encode()
        target = gateway.records("records/lookup", self.user, "iCloud.org.example.hostile")
        return f"POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    def send(self, client, turn):
        time.sleep(0.1)
        return 200, None

    def finish(self):
        for one in self.held:
            one.close()


class FirstSyncs(Attack):
    """Devices that have nothing yet, of a zone of many small records."""

    name, seconds, cost, clients, shrinks = "read: first syncs", 3.0, 3.0, 4, True

    def prepare(self):
        client = Client(self.stand.gateways[0], self.user)
        client.make_zones(["small"])
        for start in range(0, 10_000 if self.is_long else 4_000, 200):
            client.save("L", [(f"r{number}", {"u": "x" * 200}) for number in range(start, start + 200)], zone="small")

    def send(self, client, turn):
        zone = {"zoneID": {"zoneName": "small"}, **({"syncToken": client.token} if getattr(client, "token", None) else {})}
        status, answer = client.records("changes/zone", {"zones": [zone]})
        if status == 200:
            feed = answer["zones"][0]
            client.token = feed["syncToken"] if feed.get("moreComing") else None
        return status, answer


class OthersRecords(Attack):
    """Alice has ten records of a type that its creator alone may read. Somebody else saves large ones of another type beside them."""

    name, seconds, cost, clients = "read: creator-only records beside others' large ones", 3.0, 2.0, 4

    def prepare(self):
        self.user = "stratus-user-alice"
        Client(self.stand.gateways[0], self.user).save("Secret", [(f"s{n}", {"n": n}) for n in range(10)], database="public")
        mallory = Client(self.stand.gateways[0], "stratus-user-mallory")
        for number in range(40):
            mallory.save("L", [(f"noise-{number}", {"u": "x" * 900_000})], database="public")

    BODY = {"query": {"recordType": "Secret", "filterBy": [
        {"fieldName": "n", "comparator": "LESS_THAN", "fieldValue": {"value": 100}}], "sortBy": [{"fieldName": "n"}]}}

    def send(self, client, turn):
        if turn == 0:
            status, answer = client.records("records/query", self.BODY, "public")
            if status not in (429, 503) and (status != 200 or len(answer["records"]) != 10):
                return 0, f"Alice is answered {status} {str(answer)[:200]}"
            return status, answer
        unsorted = {"query": {key: value for key, value in self.BODY["query"].items() if key != "sortBy"}}
        return client.records("internal/records/query/batch", {"batch": [unsorted] * 20}, "public")

    def loop(self, number, until):
        super().loop(number, until)
        # Alice's answer is one finding, and what it costs is another.
        if self.wrong and self.wrong.startswith("0 "):
            client, turn = Client(self.stand.gateways[number % len(self.stand.gateways)], self.user), 1
            while time.monotonic() < until:
                self.send(client, turn)
                self.count += 1


class DeepPaths(Attack):
    """Look-ups of documents by paths of sixty long names."""

    name, seconds, cost = "read: documents by deep paths", 2.0, 0.5

    def prepare(self):
        names = [f"{level:02}" + "ordner" * 33 for level in range(60)]
        client = Client(self.stand.gateways[0], self.user)
        ids = ["documents"] + [f"{level:032x}" for level in range(1, 61)]
        client.must("deep folders", lambda: client.documents("items/modify", {"device": "a", "now": 1, "operations": [
            {"operation": "create", "kind": "folder", "id": ids[level + 1], "folder": ids[level], "name": name}
            for level, name in enumerate(names)]}))
        self.body = {"items": [{"path": "/".join(["Documents", *names])}] * 200}

    def send(self, client, turn):
        return client.documents("items/lookup", self.body)


ATTACKS = [SkippingFeed, LargeLookUps, SlowReaders, FirstSyncs, OthersRecords, DeepPaths]
