"""Core Data's mirror of a store, as a client of zones: the conventions alone, against a real node.

    core_data.py BINARY WORK [--rows N] [--seed S] [--placement whole|zone] [--nodes 1|3]

Two devices keep a store each: rows with attributes, to-one and many-to-many relations, and texts that overflow into assets. Each
exports what was changed in batches of 200, atomically and if unchanged, and imports what `changes/zone` tells. They work at
the same time and change the same rows; meanwhile a node is killed and started again, and one device loses its token. At the end
both stores are equal, and equal to what a third device reads from nothing. One PASS or FAIL line for each step.

With three nodes each request goes to the next node, and each kill hits the next one.
"""

import argparse
import copy
import itertools
import json
import os
import random
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Support"))
import stratus

ZONE = "com.apple.coredata.cloudkit.zone"
BATCH = 200
# A text that is longer goes into the asset beside it.
OVERFLOW = 1_000
PATIENCE = 40


def step(name, is_good, detail=""):
    stratus.step("core-data: " + name, is_good, detail)


class Server:
    """What devices ask: sent again while a node is away. What was sent twice is told by its change tag."""

    def post(self, url, body):
        with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "text/plain"}), timeout=10) as answer:
            return answer.read()

    def ask(self, operation, body):
        until = time.monotonic() + PATIENCE
        while True:
            url = self.target(operation)
            try:
                return json.loads(self.post(url, json.dumps(body).encode()))
            except urllib.error.HTTPError as error:
                answer = json.loads(error.read() or b"{}")
                if error.code < 500 and answer.get("serverErrorCode") not in ("TRY_AGAIN_LATER", "THROTTLED"):
                    return answer
            except (OSError, ValueError):
                pass
            if time.monotonic() > until:
                raise AssertionError(f"{operation} was not answered")
            time.sleep(0.1)

    def upload(self, kind, name, field, content):
        def send():
            tokens = self.ask("assets/upload", {"zoneID": {"zoneName": ZONE}, "tokens": [
                {"recordType": kind, "recordName": name, "fieldName": field}]})
            return json.loads(self.post(tokens["tokens"][0]["url"], content))["singleFile"]
        return self.patiently("an upload", send)

    def download(self, url):
        def get():
            with urllib.request.urlopen(url.replace("${f}", "text"), timeout=10) as answer:
                return answer.read().decode()
        return self.patiently("a download", get)

    @staticmethod
    def patiently(what, act):
        """Acts again while the node that a link names is away."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return act()
            except (OSError, ValueError) as error:
                if time.monotonic() > until:
                    raise AssertionError(f"{what} was not answered: {error}") from error
            time.sleep(0.1)


class Alone(Server, stratus.Node):
    """One node, which may be killed and comes back over the same directory."""

    def __init__(self, binary, work, placement):
        self.binary, self.work, self.words = binary, work, ["--placement", placement]
        self.start()

    def start(self):
        with open(os.path.join(self.work, "node.log"), "ab") as log:
            super().__init__(os.path.join(self.work, "data"), *self.words, program=self.binary, log=log)

    def restart(self):
        self.kill()
        self.start()

    def target(self, operation):
        return self.url + self.path(operation, self.facts["webAuthToken"])


class Three(Server, stratus.Cluster):
    """Three nodes, of which one after the other is killed and comes back."""

    def __init__(self, binary, work, placement):
        super().__init__(work, binary, {"STRATUS_DEVELOPMENT_ZONE_BUCKETS": "4"} if placement == "zone" else {})
        self.turns, self.victims = itertools.count(), itertools.count()
        self.up("--partitions", "16")

    def restart(self):
        victim = next(self.victims) % 3
        self.kill(victim)
        self.start(victim)

    def target(self, operation):
        return f"http://{self.addresses[next(self.turns) % 3]}{self.path(operation, self.facts['webAuthToken'])}"

    def stop(self):
        self.run("down")


class Device:
    """A store. A row is its entity and its attributes; a relation is a text with the other row's name."""

    def __init__(self, server, name, seed):
        self.server, self.name, self.random = server, name, random.Random(seed)
        self.rows, self.tags, self.base, self.token = {}, {}, {}, None
        # Names of rows that the server has to hear of.
        self.changed, self.removed = set(), set()
        self.conflicts = 0

    # What the app does.

    def insert(self, entity, **attributes):
        name = str(uuid.UUID(int=self.random.getrandbits(128), version=4)).upper()
        self.rows[name] = {"entity": entity, **attributes}
        self.changed.add(name)
        return name

    def link(self, one, other):
        return self.insert("CDMR", entityNames="Book:Label", recordNames=f"{one}:{other}", relationships="labels:books")

    def update(self, name, **attributes):
        self.rows[name].update(attributes)
        self.changed.add(name)

    def delete(self, name):
        self.rows.pop(name)
        self.changed.discard(name)
        if name in self.tags:
            self.removed.add(name)

    # Rows and records.

    @staticmethod
    def kind(entity):
        return entity if entity == "CDMR" else "CD_" + entity

    def fields(self, name):
        row = self.rows[name]
        fields = {"CD_entityName": {"value": row["entity"], "type": "STRING"}}
        for key, value in row.items():
            if key == "entity":
                continue
            if isinstance(value, int):
                fields["CD_" + key] = {"value": value, "type": "INT64"}
            elif len(value) <= OVERFLOW:
                fields["CD_" + key] = {"value": value, "type": "STRING"}
                if key == "notes":
                    fields["CD_notes_ckAsset"] = {"value": None}
            else:
                field = f"CD_{key}_ckAsset"
                asset = self.server.upload(self.kind(row["entity"]), name, field, value.encode())
                fields[field] = {"value": asset, "type": "ASSETID"}
                fields["CD_" + key] = {"value": None}
        return fields

    def row(self, record):
        row = {"entity": record["fields"]["CD_entityName"]["value"]}
        for key, field in record["fields"].items():
            if key == "CD_entityName" or field.get("value") is None:
                continue
            if key.endswith("_ckAsset"):
                row[key[3:-len("_ckAsset")]] = self.server.download(field["value"]["downloadURL"])
            else:
                row[key[3:]] = field["value"]
        return row

    # Export and import.

    def operation(self, name):
        if name in self.removed:
            return {"operationType": "forceDelete", "record": {"recordName": name}}
        record = {"recordName": name, "recordType": self.kind(self.rows[name]["entity"]), "fields": self.fields(name)}
        if name not in self.tags:
            return {"operationType": "create", "record": record}
        record["recordChangeTag"] = self.tags[name]
        return {"operationType": "update", "record": record}

    def export(self):
        while names := sorted(self.changed | self.removed)[:BATCH]:
            sent = {name: copy.deepcopy(self.rows.get(name)) for name in names}
            answer = self.server.ask("records/modify", {
                "zoneID": {"zoneName": ZONE}, "atomic": True, "operations": [self.operation(name) for name in names]})
            codes = {record.get("serverErrorCode") for record in answer.get("records", [])} - {None}
            if "serverErrorCode" in answer:
                codes.add(answer["serverErrorCode"])
            if codes - {"CONFLICT", "ATOMIC_ERROR", "EXISTS", "NOT_FOUND"}:
                raise AssertionError(f"{self.name}: {answer}")
            if codes:
                # Others were first: their changes come in, ours go on top of them, and the batch is sent again.
                self.conflicts += 1
                self.fetch()
                continue
            for record in answer["records"]:
                name = record["recordName"]
                if record.get("deleted"):
                    self.removed.discard(name)
                    self.tags.pop(name, None)
                    self.base.pop(name, None)
                    continue
                self.tags[name] = record["recordChangeTag"]
                self.base[name] = sent[name]
                if self.rows.get(name) == sent[name]:
                    self.changed.discard(name)

    def fetch(self):
        while True:
            zone = {"zoneID": {"zoneName": ZONE}, "resultsLimit": BATCH}
            if self.token:
                zone["syncToken"] = self.token
            answer = self.server.ask("changes/zone", {"zones": [zone]})["zones"][0]
            if answer.get("serverErrorCode"):
                raise AssertionError(f"{self.name}: {answer}")
            for record in answer["records"]:
                self.take(record)
            self.token = answer["syncToken"]
            if not answer["moreComing"]:
                return

    def take(self, record):
        name = record["recordName"]
        if record.get("deleted"):
            # Deleting wins over changing: the mirror keeps no row that another device removed.
            for known in (self.rows, self.tags, self.base):
                known.pop(name, None)
            self.changed.discard(name)
            self.removed.discard(name)
            return
        if self.tags.get(name) == record["recordChangeTag"]:
            return
        theirs = self.row(record)
        self.tags[name] = record["recordChangeTag"]
        if name in self.removed:
            return
        if name in self.changed:
            # Attribute by attribute: what was changed here stays, the rest is theirs.
            base, mine = self.base.get(name, {}), self.rows[name]
            merged = dict(theirs)
            for key, value in mine.items():
                if base.get(key) != value:
                    merged[key] = value
            self.rows[name] = merged
            if merged == theirs:
                self.changed.discard(name)
        else:
            self.rows[name] = theirs
        self.base[name] = theirs

    def forget(self):
        """The token is lost: everything is told again, and what is not told is gone."""
        self.token = None
        before = set(self.tags)
        told = set()
        take, self.take = self.take, lambda record: (told.add(record["recordName"]), take(record))
        try:
            self.fetch()
        finally:
            self.take = take
        for name in before - told:
            take({"recordName": name, "deleted": True})

    def sync(self):
        self.fetch()
        self.export()
        self.fetch()


def work(device, count):
    """A person at one device: new rows, changes, deletions and relations."""
    dice = device.random
    authors = [device.insert("Author", name=f"{device.name} author {number}") for number in range(max(1, count // 20))]
    labels = [device.insert("Label", name=f"{device.name} label {number}") for number in range(5)]
    for number in range(count):
        notes = "n" * dice.choice([3, 30, 300, OVERFLOW + 500] if number % 50 == 0 else [3, 30, 300])
        book = device.insert("Book", title=f"book {number}", pages=dice.randrange(900), author=dice.choice(authors), notes=notes)
        if number % 10 == 0:
            device.link(book, dice.choice(labels))


def meddle(device, names, count):
    dice = device.random
    for _ in range(count):
        name = dice.choice(names)
        if name not in device.rows:
            continue
        if dice.random() < 0.1:
            device.delete(name)
        elif device.name == "mac":
            device.update(name, title=f"title of mac {dice.randrange(1_000)}")
        else:
            device.update(name, pages=dice.randrange(1_000), notes="m" * dice.choice([5, OVERFLOW + 200]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("work")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--placement", choices=["whole", "zone"], default="whole")
    parser.add_argument("--nodes", type=int, choices=[1, 3], default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.rows} rows, {options.nodes} node(s), private databases: {options.placement}", flush=True)
    server = (Alone if options.nodes == 1 else Three)(options.binary, options.work, options.placement)
    try:
        run(server, options)
    finally:
        server.stop()


def run(server, options):
    server.ask("zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": ZONE}}}]})
    mac, phone = Device(server, "mac", options.seed), Device(server, "phone", options.seed + 1)
    for device in (mac, phone):
        work(device, options.rows // 2)
    errors = []

    def at(device, steps):
        try:
            for act in steps:
                act()
        except BaseException as error:
            errors.append(f"{device.name}: {error!r}")

    def together(*lines):
        threads = [threading.Thread(target=at, args=line) for line in lines]
        for thread in threads:
            thread.start()
        time.sleep(0.4)
        server.restart()
        for thread in threads:
            thread.join()

    together((mac, [mac.sync]), (phone, [phone.sync]))
    step("two devices export their stores while a node is killed", not errors, errors)
    for device in (mac, phone):
        device.sync()
    mac.fetch()
    step("both have every row", mac.rows == phone.rows and len(mac.rows) > options.rows, (len(mac.rows), len(phone.rows)))

    books = sorted(name for name, row in mac.rows.items() if row["entity"] == "Book")
    shared = books[:max(20, options.rows // 10)]
    together(*((device, [lambda device=device: meddle(device, shared, len(shared)), device.sync] * 3) for device in (mac, phone)))
    step("both change the same rows while a node is killed", not errors, errors)
    for _ in range(2):
        for device in (mac, phone):
            device.sync()
    step("conflicts were met and merged", mac.conflicts + phone.conflicts > 0)
    step("the stores are equal", mac.rows == phone.rows, difference(mac, phone))

    mac.delete(books[-1])
    mac.sync()
    phone.forget()
    step("a device that lost its token comes to the same store", mac.rows == phone.rows, difference(mac, phone))
    fresh = Device(server, "fresh", options.seed + 2)
    fresh.fetch()
    step("a new device reads the same store", fresh.rows == mac.rows, difference(mac, fresh))
    overflowed = sum(len(row.get("notes", "")) > OVERFLOW for row in fresh.rows.values())
    relations = [row["recordNames"].split(":") for row in fresh.rows.values() if row["entity"] == "CDMR"]
    step("long texts came through assets", overflowed > 0)
    step("relations name labels that are there", bool(relations) and all(label in fresh.rows for _, label in relations))


def difference(one, other):
    names = sorted(name for name in set(one.rows) | set(other.rows) if one.rows.get(name) != other.rows.get(name))
    return len(names), [(one.rows.get(name), other.rows.get(name)) for name in names[:2]]


if __name__ == "__main__":
    main()
