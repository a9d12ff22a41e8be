"""The kinds of requests that are counted: the path and the body of each."""
import json, random, time
from closed_loop import Connection
from worlds import BODY, FILES, RECORDS, fields

KINDS = {1: ["healthz", "lookup", "save", "create", "query", "batch", "sync", "first-sync", "dav-get"], 3: ["lookup", "save"]}
RETRIES = 300


class PatientConnection(Connection):
    """Asks again after 503: under callgrind a leader may be taken for silent. The count tells whether a figure is of use."""

    refused = 0

    def ask(self, path, body):
        self.asked = path, body
        super().ask(path, body)

    def answer(self):
        while True:
            try:
                return super().answer()
            except SystemExit as problem:
                if " 503 " not in str(problem).split("\n")[0] or PatientConnection.refused >= RETRIES:
                    raise
                PatientConnection.refused += 1
                time.sleep(0.05)
                super().ask(*self.asked)


def makers(world):
    """For each kind of work a function that says what to ask for next."""
    draw, base, tokens = random.Random(7), world.base, world.tokens
    sync_tokens = []

    def record(**what):
        return {"recordType": "Note", **what}

    def modify(operations):
        body = json.dumps({"operations": operations})
        return lambda: (f"{base}/records/modify{tokens}", body)

    def lookup():
        return f"{base}/records/lookup{tokens}", '{"records":[{"recordName":"r%06d"}]}' % draw.randrange(RECORDS)

    def query():
        return f"{base}/records/query{tokens}", json.dumps({
            "resultsLimit": 20, "query": {"recordType": "Note", "filterBy": [{
                "fieldName": "rating", "comparator": "GREATER_THAN_OR_EQUALS",
                "fieldValue": {"value": draw.randrange(900)}}], "sortBy": [{"fieldName": "rating"}]}})

    def sync():
        if not sync_tokens:
            connection = PatientConnection(world.port)
            connection.ask(f"{base}/changes/database{tokens}", "{}")
            sync_tokens.append(json.loads(connection.answer())["syncToken"])
            connection.socket.close()
        return f"{base}/changes/database{tokens}", json.dumps({"syncToken": sync_tokens[0]})

    return {
        "healthz": lambda: ("/healthz", None), "lookup": lookup, "query": query, "sync": sync,
        "save": modify([{"operationType": "forceUpdate", "record": record(recordName="first", fields={"body": {"value": BODY}})}]),
        "create": modify([{"operationType": "create", "record": record(fields=fields(123))}]),
        "batch": modify([{"operationType": "create", "record": record(fields=fields(n))} for n in range(200)]),
        "first-sync": lambda: (f"{base}/changes/database{tokens}", "{}"),
        "dav-get": lambda: (f"{world.files}/f{draw.randrange(FILES):05d}{tokens}", None),
    }
