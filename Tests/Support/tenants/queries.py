"""Searches: many operands, many words, large texts, all zones."""
from .attack import Attack


def query(field, comparator, value, **more):
    return {"query": {"recordType": "L", "filterBy": [
        {"fieldName": field, "comparator": comparator, "fieldValue": {"value": value}}], **more}, "desiredKeys": []}


ABSENT = [f"a{number:06}" for number in range(20_000)]
FEW = ABSENT[:240] + ["m00899"]


class HostileQuery(Attack):
    """A query that is sent again and again, following markers, in a database of long lists, large texts and many zones."""

    operation, seconds, cost = "records/query", 0.5, 0.2
    body = {}

    def prepare(self):
        self.user = "stratus-user-queries"
        Library.make(self.stand, self.user)

    def send(self, client, turn):
        status, answer = client.records(self.operation, {**self.body, **getattr(client, "marker", {})})
        marker = answer.get("continuationMarker") if isinstance(answer, dict) else None
        client.marker = {"continuationMarker": marker} if marker else {}
        return status, answer


class Library:
    """What hostile queries read, made once for a stand."""

    @classmethod
    def make(cls, stand, user):
        if getattr(stand, "has_library", False):
            return
        from .attack import Client
        client = Client(stand.gateways[0], user)
        words = [f"m{number:05}" for number in range(900)]
        client.save("L", [("many", {"s": words, "t": " ".join(words)})])
        for number in range(10):
            # More words than are indexed, not of ASCII, and nothing ends the cutting early.
            client.save("L", [(f"large-{number}", {"t": " ".join(f"größe{word}" for word in range(1_200)) + " größer" * 90_000})])
        client.make_zones([f"z{number}" for number in range(1_000)] + ["many"])
        # A zone whose feed passes over large records of another type.
        for number in range(8):
            client.save("L", [(f"wide-{number}-{other}", {"u": "x" * 300_000}) for other in range(8)], zone="many")
        stand.has_library = True


def kind(title, body, status=200, **more):
    return type("HostileQuery", (HostileQuery,), {"name": title, "body": body, "expected": (status,), **more})


ZONES = {"zoneWide": True, **query("t", "BEGINS_WITH", "nobody")}
ATTACKS = [
    kind("query: 20,000 operands in a list", query("s", "LIST_CONTAINS_ANY", ABSENT), 400),
    kind("query: 20,000 words", query("t", "CONTAINS_ANY_TOKENS", " ".join(ABSENT)), 400),
    kind("query: as many operands as are taken", query("s", "LIST_CONTAINS_ANY", FEW)),
    kind("query: as many words as are taken", query("t", "CONTAINS_ANY_TOKENS", " ".join(FEW))),
    kind("query: a word that no large text has", query("t", "CONTAINS_ANY_TOKENS", "nosuchword")),
    kind("query: large texts that are sorted and not taken", query("t", "NOT_EQUALS", "x", sortBy=[{"fieldName": "t"}])),
    kind("query: a million names to sort",
         query("recordName", "IN", [f"n{number}" for number in range(500_000)], sortBy=[{"fieldName": "t"}]), 400),
    kind("query: all zones, twenty times", {"batch": [ZONES] * 20}, operation="internal/records/query/batch"),
    kind("query: a hundred filters with all operands", {"query": {"recordType": "L", "filterBy": [
        {"fieldName": "s", "comparator": "NOT_LIST_CONTAINS_ANY", "fieldValue": {"value": FEW[:200]}}
        for _ in range(100)]}, "desiredKeys": []}),
    kind("query: prefixes of every element", query("s", "LIST_MEMBER_BEGINS_WITH", "m")),
]
