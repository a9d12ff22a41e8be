"""Saves: large texts, large batches, and a schema that fills indexes."""
import json

from .attack import Attack, Client


def batch(records, **more):
    return json.dumps({"operations": [{"operationType": "forceUpdate", "record": {
        "recordType": "L", "recordName": name, "fields": {key: {"value": value} for key, value in fields.items()}}}
        for name, fields in records], **more}).encode()


class Save(Attack):
    """A batch that is saved again and again."""

    def prepare(self):
        Client(self.stand.gateways[0], self.user).make_zones(["heap"])
        self.body = self.make()

    def send(self, client, turn):
        return client.records("records/modify", self.body)


class LargeText(Save):
    name, seconds = "save: a large text of many words", 1.0

    def make(self):
        return batch([("saved", {"t": " ".join(f"größe{number}" for number in range(30_000))})])


class LargeTexts(Save):
    name, seconds = "save: ten texts of 0.7 MB", 3.0

    def make(self):
        return batch([(f"text-{number}", {"t": " ".join(f"größe{word}" for word in range(60_000))}) for number in range(10)])


class LargeBatches(Save):
    name, seconds, expected = "save: atomic batches of 15 MB", 3.0, (200, 413)

    def make(self):
        return batch([(f"wide-{number}", {"u": "x" * 900_000}) for number in range(17)],
                     zoneID={"zoneName": "heap"}, atomic=True)


class BatchesOfWords(Save):
    name, seconds = "save: atomic batches of 200 records of 1,000 words", 3.0

    def make(self):
        return batch([(f"words-{number}", {"t": " ".join(f"w{number}x{word}" for word in range(1_000))}) for number in range(200)],
                     zoneID={"zoneName": "heap"}, atomic=True)


class SchemaImport(Attack):
    """A schema gives indexes to fields of a type that has many records."""

    name, seconds, cost, outlives, shrinks = "save: a schema that fills indexes", 3.0, 4.0, True, True
    CONTAINER = "iCloud.org.example.filled"
    TEXT = """DEFINE SCHEMA
        RECORD TYPE F (a STRING%s, b STRING%s, c STRING%s, GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud");
    """

    def prepare(self):
        self.stand.import_schema(self.CONTAINER, self.TEXT % ("", "", ""))
        client = Client(self.stand.gateways[0], self.user, self.CONTAINER)
        text = " ".join(f"wort{word}" for word in range(60))
        for start in range(0, 10_000 if self.is_long else 3_000, 200):
            client.save("F", [(f"r{number}", {key: f"{number} {text}" for key in "abc"}) for number in range(start, start + 200)])

    def send(self, client, turn):
        options = (" QUERYABLE SORTABLE SEARCHABLE",) * 3 if turn % 2 == 0 else ("",) * 3
        self.stand.import_schema(self.CONTAINER, self.TEXT % options)
        # The partition learns of it by the next save.
        return Client(client.gateway, self.user, self.CONTAINER).records("records/modify", {"operations": [
            {"operationType": "forceUpdate", "record": {"recordType": "F", "recordName": "r0", "fields": {"a": {"value": "x"}}}}]})

    def loop(self, number, until):
        # Once: what is measured is the work that it leaves.
        super().loop(number, 0)


ATTACKS = [LargeText, LargeTexts, LargeBatches, BatchesOfWords, SchemaImport]
