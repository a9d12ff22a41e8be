#!/usr/bin/env python3
"""The collection of files under load: many events, and afterwards nothing is missing and nothing is left over.

    Tests/Benchmarks/asset-collection/run.py [--events 100000] [--minutes 20] [--program .build/release/stratus]

Three nodes of real processes (Deploy/cluster), whose collection and compaction run without a limit and with a grace of one second.
Users upload files, save, replace, share and delete them, leave uploads without a record, and delete whole zones, while a node
drawn from the seed is killed every half minute and started again two seconds later. With --rotate the container gets newer keys all the
time, through nodes that are drawn too. An event is one upload, one reference that
was saved (the first one, a replacement or a share), one record that was deleted, one zone that was deleted, or one kill.

Afterwards every reference is read through every node, and its bytes must have the checksum that the record states. Then the clocks
of all nodes go on by two days, so that every pin and ticket is over, and each database must count as many files as its records
hold different ones, and an audit of each node must find nothing. At last all records are deleted, and no node may keep a copy. Ends with 1 if anything was missing or left.
"""
import argparse, collections, http.client, json, os, random, shutil, subprocess, sys, tempfile, threading, time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../Support"))
import stratus, wall_clock
from files import DAY, LIVE, Client, Cluster, Refused, checksum, patiently
from stratus import wait

BATCH = 20
ZONES = ["_defaultZone", "z1", "z2", "z3"]
RECORDS = 60
SETTINGS = {"STRATUS_ASSETS_GRACE_TIME": "1s", "STRATUS_ASSETS_LINK_LIFE": "60s", "STRATUS_ASSETS_COMPACTION_RATE": "0",
            "STRATUS_ASSETS_REPAIR_RATE": "0", "STRATUS_STORAGE_SCRUB_RATE": "1GiB", "STRATUS_LOG_LEVEL": "warning"}
begun = time.monotonic()
failures = 0


def step(name, ok, detail=""):
    global failures
    failures += not ok
    print(f"{time.monotonic() - begun:7.1f} s  {'PASS' if ok else 'FAIL'} {name}{'' if ok else f' ({detail})'}", flush=True)
    return ok


class User(Client):
    """Works in batches, and keeps what each record may hold: checksums, or None for no file."""

    def __init__(self, cluster, number, seed):
        super().__init__(cluster, f"user{number}", number % 3)
        self.chance = random.Random(f"{seed} {number}")
        self.allowed = {zone: {} for zone in ZONES}
        self.events = collections.Counter()
        self.unexpected, self.refused, self.cut = [], 0, 0
        self.connections = {}

    def request(self, method, host, path, body=None, headers={}):
        """Over a connection that stays open."""
        connection = self.connections.pop(host, None) or http.client.HTTPConnection(host, timeout=40)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            status, head, text = answer.status, answer.headers, answer.read()
        except BaseException:
            connection.close()
            raise
        self.connections[host] = connection
        return status, head, text

    def may(self, zone, record, value):
        known = self.allowed[zone]
        known[record] = known.get(record, {None}) | {value}

    def ask(self, operation, zone, body):
        status, answer = self.api(operation, {"zoneID": {"zoneName": zone}, **body})
        if status != 200:
            raise Refused(answer)
        return answer

    def content(self):
        """Some are equal, some are empty, and some have several chunks. Half of the bytes can be compressed."""
        size = self.chance.choice([self.chance.randrange(3_000)] * 60 + [0, self.chance.randrange(600_000)])
        half = random.Random(self.chance.randrange(400)).randbytes(size // 2) if self.chance.random() < 0.3 \
            else self.chance.randbytes(size // 2)
        return half + bytes(size - len(half))

    def zone(self):
        return self.chance.choice(ZONES)

    def uploads(self, zone, names):
        tickets = self.ask("assets/upload", zone, {"tokens": [
            {"recordType": "Book", "recordName": name, "fieldName": "cover"} for name in names]})["tokens"]
        for name, ticket in zip(names, tickets):
            data, (host, path) = self.content(), ticket["url"].split("//")[1].split("/", 1)
            status, _, body = self.request("POST", host, "/" + path, data, {"Content-Type": "application/octet-stream"})
            if status == 503:
                raise Refused(body)
            if status != 200:
                self.unexpected.append((status, body))
                return
            self.events["uploads"] += 1
            yield name, json.loads(body)["singleFile"], checksum(data)

    def references(self, zone, values, kind):
        """Saves a receipt in each record: names, receipts and checksums."""
        for name, _, stated in values:
            self.may(zone, name, stated)
        answer = self.ask("records/modify", zone, {"operations": [{"operationType": "forceUpdate", "record": {
            "recordName": name, "recordType": "Book", "fields": {"cover": {"value": receipt}}}} for name, receipt, _ in values]})
        for (name, _, stated), record in zip(values, answer["records"], strict=True):
            if "fields" in record:
                had = self.allowed[zone][name] - {None, stated}
                self.allowed[zone][name] = {stated}
                self.events[kind if kind == "shares" or not had else "replacements"] += 1
            elif record.get("serverErrorCode") != "TRY_AGAIN_LATER":
                self.unexpected.append(record)

    def put(self):
        zone = self.zone()
        names = self.chance.sample([f"r{number}" for number in range(RECORDS)], BATCH)
        values = list(self.uploads(zone, names))
        # Some uploads are left without a record.
        values = [value for value in values if self.chance.random() > 0.1]
        if values:
            self.references(zone, values, "saves")

    def share(self):
        zone = self.zone()
        held = [name for name, stated in sorted(self.allowed[zone].items()) if len(stated) == 1 and None not in stated]
        names = self.chance.sample(held, min(BATCH, len(held)))
        if not names:
            return
        assets = self.ask("assets/rereference", zone, {"assets": [
            {"recordName": name, "fieldName": "cover"} for name in names]})["assets"]
        targets = self.chance.sample([f"r{number}" for number in range(RECORDS)], len(names))
        values = []
        for target, name, asset in zip(targets, names, assets):
            # It is a file that this record held: which one, the answer says.
            if "receipt" not in asset:
                self.unexpected.append(asset)
                continue
            value = {key: asset[key] for key in ("fileChecksum", "size", "receipt")}
            if value["fileChecksum"] not in self.allowed[zone][name]:
                self.unexpected.append((name, asset))
            values.append((target, value, value["fileChecksum"]))
        if values:
            self.references(zone, values, "shares")

    def delete(self):
        zone = self.zone()
        held = sorted(self.allowed[zone])
        names = self.chance.sample(held, min(BATCH, len(held)))
        if not names:
            return
        for name in names:
            self.may(zone, name, None)
        answer = self.ask("records/modify", zone, {"operations": [
            {"operationType": "forceDelete", "record": {"recordName": name}} for name in names]})
        for name, record in zip(names, answer["records"], strict=True):
            if record.get("deleted"):
                self.events["deletions"] += self.allowed[zone][name] != {None}
                self.allowed[zone][name] = {None}

    def make(self, zone):
        status, answer = self.api("zones/modify", {"operations": [
            {"operationType": "create", "zone": {"zoneID": {"zoneName": zone}}}]})
        if status != 200 or "serverErrorCode" in answer["zones"][0]:
            raise Refused(answer)

    def drop(self):
        zone = self.chance.choice(ZONES[1:])
        for name in self.allowed[zone]:
            self.may(zone, name, None)
        status, answer = self.api("zones/modify", {"operations": [
            {"operationType": "delete", "zone": {"zoneID": {"zoneName": zone}}}]})
        if status == 200 and "serverErrorCode" not in answer["zones"][0]:
            self.events["zone deletions"] += 1
            self.allowed[zone] = {name: {None} for name in self.allowed[zone]}
        patiently(lambda: self.make(zone))

    def read(self):
        """A reference that nobody else changes meanwhile."""
        zone = self.zone()
        held = sorted(self.allowed[zone])
        if held:
            problem = self.problem(zone, self.chance.choice(held))
            if problem:
                self.unexpected.append(problem)

    def problem(self, zone, name):
        """What is wrong with a record and its file; None: nothing."""
        answer = patiently(lambda: self.ask("records/lookup", zone, {"records": [{"recordName": name}]}))
        value = answer["records"][0].get("fields", {}).get("cover", {}).get("value")
        stated = value["fileChecksum"] if value else None
        if stated not in self.allowed[zone][name]:
            return (self.user, zone, name, self.node, stated, self.allowed[zone][name])
        if value:
            status, body = patiently(lambda: self.file(value))
            if status != 200 or checksum(body) != stated or len(body) != value["size"]:
                return (self.user, zone, name, self.node, status, len(body))
        return None

    def file(self, value):
        answer = self.download(value, self.node)
        if answer[0] == 503:
            raise Refused(answer)
        return answer

    def work(self, is_over):
        for zone in ZONES[1:]:
            patiently(lambda: self.make(zone))
        choices = [self.put] * 50 + [self.share] * 18 + [self.delete] * 28 + [self.drop] + [self.read] * 3
        while not is_over():
            try:
                self.chance.choice(choices)()
            except Refused:
                self.refused += 1
                self.node = self.chance.randrange(3)
                time.sleep(0.05)
            except (OSError, http.client.HTTPException, ValueError):
                self.cut += 1
                self.node = self.chance.randrange(3)
                time.sleep(0.02)

    def whole(self, node):
        """Reads every reference through a node."""
        self.node, found, read = node, [], 0
        for zone, records in self.allowed.items():
            for name in sorted(records):
                problem = self.problem(zone, name)
                found += [problem] if problem else []
                read += 1
        return found, read

    def settle(self):
        """What the records hold now, where an answer was cut off."""
        held = set()
        for zone, records in self.allowed.items():
            for name in sorted(records):
                answer = patiently(lambda: self.ask("records/lookup", zone, {"records": [{"recordName": name}]}))
                value = answer["records"][0].get("fields", {}).get("cover", {}).get("value")
                records[name] = {value["fileChecksum"] if value else None}
                if value:
                    held.add((value["fileChecksum"], value["size"]))
        return held

    def usage(self):
        status, answer = self.api("usage", {})
        if status != 200:
            raise Refused(answer)
        return answer["assets"], answer["assetBytes"]


def each(users, body):
    """Runs it for all users at the same time, and returns what they returned."""
    results = [None] * len(users)

    def run(number):
        results[number] = body(users[number])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(users))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def rotate(cluster, node):
    """One rotation of the container's key. Returns the exit code and the last line."""
    words = [*cluster.control_words(node), "--json", "encryption-key", "rotate-container", "--container", cluster.container]
    done = subprocess.run(words, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    return done.returncode, json.loads(lines[-1]) if lines else done.stderr


def rotations(cluster, chance, is_over, counts):
    while not is_over():
        code, _ = rotate(cluster, chance.randrange(3))
        counts["done" if code == 0 else "interrupted"] += 1
        time.sleep(1)


def load(cluster, users, options):
    chance, end, kills = random.Random(options.seed), time.monotonic() + options.minutes * 60, 0
    total = lambda: sum(user.events.total() for user in users) + kills
    is_over = lambda: total() >= options.events or time.monotonic() > end
    threads = [threading.Thread(target=user.work, args=(is_over,)) for user in users]
    counts = collections.Counter()
    if options.rotate:
        cluster.control(0, "container", "create", "--container", cluster.container)
        threads.append(threading.Thread(target=rotations, args=(cluster, random.Random(options.seed + 1), is_over, counts)))
    for thread in threads:
        thread.start()
    start, said = time.monotonic(), 0
    while not is_over():
        stop = time.monotonic() + 30
        while time.monotonic() < stop and not is_over():
            time.sleep(0.5)
        if is_over():
            break
        node = chance.randrange(3)
        cluster.kill(node)
        kills += 1
        time.sleep(2)
        cluster.start(node)
        if time.monotonic() - said > 120:
            said = time.monotonic()
            print(f"{said - begun:7.1f} s  {total()} events", flush=True)
    for thread in threads:
        thread.join()
    seconds, events = time.monotonic() - start, sum((user.events for user in users), collections.Counter({"kills": kills}))
    print(f"{events.total()} events in {seconds:.0f} s: "
          + ", ".join(f"{count} {kind}" for kind, count in events.most_common()), flush=True)
    print(f"{sum(user.refused for user in users)} requests were told to try again, {sum(user.cut for user in users)} were cut off")
    print(f"load of the machine: {' '.join(f'{value:.1f}' for value in os.getloadavg())}", flush=True)
    if options.rotate:
        code, last = rotate(cluster, 0)
        step(f"the container's key was rotated {counts['done']} times, {counts['interrupted']} runs were interrupted, and a last one ends",
             code == 0 and last.get("retired") is True and counts["done"] > 0, last)
    unexpected = [one for user in users for one in user.unexpected]
    step("no answer was an unexpected one", not unexpected, unexpected[:3])
    step(f"{options.events} events were reached", events.total() >= options.events, events.total())


def looked_at(cluster, users):
    nodes = range(3)
    missing = lambda: [cluster.figure(node, "stratus_asset_copies_missing") for node in nodes]
    step("no node lacks a copy", wait(lambda: missing() == [0, 0, 0], 60), missing())
    found, read = [], 0
    for node in nodes:
        for some, count in each(users, lambda user: user.whole(node)):
            found, read = found + some, read + count
    step(f"0 missing: {read} reads of references through the nodes", not found and read, (len(found), found[:3]))
    held = each(users, User.settle)
    for node in nodes:
        wall_clock.put(cluster.home(node), 2 * DAY)

    def counted():
        return [patiently(user.usage) for user in users]

    wanted = [(len(files), sum(size for _, size in files)) for files in held]
    step(f"0 left over: {sum(count for count, _ in wanted)} files are counted once pins are over, those that records hold",
         wait(lambda: counted() == wanted, 120, 1), (counted(), wanted))
    live = lambda: [cluster.figure(node, LIVE) for node in nodes]
    # What the last entries dropped goes once their rows are durable.
    step("0 left over: the nodes keep the same bytes of copies", wait(lambda: len(set(live())) == 1, 60), live())
    print(f"         {live()[0]:.0f} bytes on each node, of {sum(size for _, size in wanted)} bytes of files")
    step("and still no node lacks a copy", missing() == [0, 0, 0], missing())
    for node in nodes:
        code, text = cluster.control(node, "assets", "audit")
        step(f"an audit of node {node} finds nothing missing, left over or lost", code == 0, text)

    def clear(user):
        for zone, records in user.allowed.items():
            names = sorted(records)
            for start in range(0, len(names), BATCH):
                patiently(lambda: user.ask("records/modify", zone, {"operations": [
                    {"operationType": "forceDelete", "record": {"recordName": name}} for name in names[start:start + BATCH]]}))

    each(users, clear)
    step("0 left over: no node keeps a copy once nothing refers to any", wait(lambda: not any(live()), 120), live())
    step("no file is counted", counted() == [(0, 0)] * len(users), counted())
    size = lambda: sum(os.path.getsize(path) for node in nodes for path in cluster.packs(node))
    step("and their room came back", wait(lambda: size() < 1 << 20, 60), size())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=20, help="of load at most")
    parser.add_argument("--users", type=int, default=6)
    parser.add_argument("--rotate", action="store_true", help="rotate the container's key meanwhile")
    parser.add_argument("--program", default=os.path.join(stratus.RELEASE, "stratus"))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.users} users", flush=True)
    directory = tempfile.mkdtemp(prefix="stratus-collection-")
    program, problem = wall_clock.adjustable(stratus.built(options.program), directory)
    if not program:
        sys.exit(f"clocks cannot be set apart: {problem}")
    cluster = Cluster(directory, program, SETTINGS).up("--partitions", "8")
    try:
        users = [User(cluster, number, options.seed) for number in range(options.users)]
        load(cluster, users, options)
        looked_at(cluster, users)
    finally:
        cluster("down")
    if failures:
        sys.exit(f"{failures} steps failed: data and logs are in {directory}")
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
