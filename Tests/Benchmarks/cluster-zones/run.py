#!/usr/bin/env python3
"""What zone buckets gain and cost: one owner with 64 zones, whole and in 4 and 16 buckets, on three nodes and five.

    swift build -c release
    Tests/Benchmarks/cluster-zones/run.py [--sizes 3,5] [--buckets 1,4,16] [--seconds 4] [--runs 3] [--zones 64]

Each cluster is one of real processes on the loopback (Deploy/cluster), three replicas of each partition. It holds a container
for each number of buckets; 1 is a whole database. Clients are one person, on connections to all nodes in turn:

    save        a record of 300 letters in any zone
    rest        `changes/database` after which nothing changed
    save-sync   a save in any zone, then `changes/database` from the token before it
    first       `changes/database` from nothing

The numbers of buckets take turns in every round, so that what else the machine does meets all of them; the first round is
thrown away. CPU is user and system time of all nodes over the requests answered, and that of the busiest thread of any node:
it says where a cluster of machines would end first. Latency is of a low rate (--rate), the work's own.
Every process started here is ended here.

STRATUS_RELEASE names another folder of programs than .build/release.
"""
import argparse, json, os, random, re, statistics, sys, tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Support"))
import stratus
from closed_loop import Connection, ask_for

BINARY = os.environ.get("STRATUS_BINARY", os.path.join(stratus.RELEASE, "stratus"))
WORKS = ["save", "rest", "save-sync", "first"]
CONNECTIONS, PATIENCE = 24, 30
SCHEMA = b"""DEFINE SCHEMA RECORD TYPE Note (
    "___recordID" REFERENCE QUERYABLE, body STRING, GRANT READ, CREATE, WRITE TO "_icloud");"""


class Cluster(stratus.Cluster):
    def __init__(self, directory, size, counts, zones):
        super().__init__(directory, BINARY)
        self.size, self.zones, self.tokens = size, [f"zone{number}" for number in range(zones)], {}
        self.up("--nodes", str(size), "--partitions", "64")
        self.connections = [Connection(int(self.addresses[n % size].rsplit(":", 1)[1])) for n in range(CONNECTIONS)]
        for count in counts:
            self.fill(count)

    @staticmethod
    def name(count):
        return f"iCloud.org.example.zones{count}"

    def target(self, count, operation):
        return self.path(operation, "stratus-user-team", self.name(count))

    def fill(self, count):
        words = ["--placement", "zone", "--zone-buckets", str(count)] if count > 1 else []

        def made():
            """A cluster that was just formed takes formats of the newest level a moment later."""
            done = self.run("control", "container", "create", "--container", self.name(count), *words)
            if done.returncode != 0 and "being upgraded" not in done.stderr:
                self.fail(done.stderr + done.stdout)
            return done.returncode == 0
        if not stratus.wait(made, PATIENCE):
            self.fail("the container is not made")
        self.define(self.name(count), SCHEMA)
        for start in range(0, len(self.zones), 16):
            self.one(count, "zones/modify", {"operations": [
                {"operationType": "create", "zone": {"zoneID": {"zoneName": zone}}} for zone in self.zones[start:start + 16]]})
        for zone in self.zones:
            self.one(count, "records/modify", {"zoneID": {"zoneName": zone}, "operations": [self.record(n) for n in range(50)]})

    def one(self, count, operation, body):
        connection = self.connections[0]
        connection.ask(self.target(count, operation), json.dumps(body))
        return json.loads(connection.answer())

    @staticmethod
    def record(number):
        return {"operationType": "forceUpdate", "record": {"recordType": "Note", "recordName": f"r{number}", "fields": {
            "body": {"value": "x" * 300}}}}

    def walk(self, count):
        """Syncs to the end. Returns the token."""
        body, page = {}, {"moreComing": True}
        while page["moreComing"]:
            page = self.one(count, "changes/database", body)
            body = {"syncToken": page["syncToken"]}
        return page["syncToken"]

    def threads(self):
        """Seconds of CPU of every thread, by node and number."""
        spent = {}
        for node in range(self.size):
            tasks = f"/proc/{self.pid(node)}/task"
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/stat") as file:
                    name, fields = re.search(r"\((.*)\) (.*)", file.read()).groups()
                fields = fields.split()
                spent[node, task, re.sub(r"[-. ]?\d+$", "", name)] = (int(fields[11]) + int(fields[12])) / stratus.TICK
        return spent

    def load(self, work, count, seconds, rate=None):
        token, saves = self.walk(count), [0]

        def save():
            zone = random.choice(self.zones)
            return self.target(count, "records/modify"), json.dumps(
                {"zoneID": {"zoneName": zone}, "operations": [self.record(random.randrange(50))]})

        def save_and_sync():
            saves[0] += 1
            return save() if saves[0] % 2 else (self.target(count, "changes/database"), json.dumps({"syncToken": token}))
        rest = self.target(count, "changes/database"), json.dumps({"syncToken": token})
        make = {"save": save, "rest": lambda: rest, "save-sync": save_and_sync,
                "first": lambda: (self.target(count, "changes/database"), "{}")}[work]
        before = self.threads()
        took = sorted(ask_for(self.connections, seconds, make, rate))
        after = self.threads()
        spent = {thread: after[thread] - before.get(thread, 0) for thread in after}
        busiest = max(spent, key=spent.get)
        return {"cpu": sum(spent.values()) / len(took) * 1e6, "busiest": spent[busiest] / len(took) * 1e6, "thread": busiest[2],
                "rate": len(took) / seconds, "p50": took[len(took) // 2] * 1e3, "p99": took[len(took) * 99 // 100] * 1e3}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="3,5")
    parser.add_argument("--buckets", default="1,4,16")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--zones", type=int, default=64)
    parser.add_argument("--rate", type=int, default=50, help="requests a second of the part at a low rate; 0 leaves it out")
    options = parser.parse_args()
    counts = [int(count) for count in options.buckets.split(",")]
    print("| Nodes | Work | Buckets | CPU of all nodes, µs a request | busiest thread, µs | requests/s | p50, p99 at "
          f"{options.rate}/s, ms |\n| --- | --- | --- | --- | --- | --- | --- |")
    for size in (int(size) for size in options.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="stratus-zones-") as directory:
            try:
                measure(Cluster(directory, size, counts, options.zones), size, counts, options)
            except (OSError, SystemExit):
                report(stratus.Cluster(directory, BINARY), size)
                raise
            finally:
                stratus.Cluster(directory, BINARY).run("down")


def report(cluster, size):
    """What the nodes said last, when a request failed."""
    for node in range(size):
        print(f"node {cluster.number(node)} {'runs' if stratus.is_running(cluster.pid(node)) else 'has ended'}:", file=sys.stderr)
        print("\n".join(cluster.log(node).splitlines()[-60:]), file=sys.stderr)


def measure(cluster, size, counts, options):
    rounds = {(work, count): [] for work in WORKS for count in counts}
    for number in range(options.runs + 1):
        for work in WORKS:
            for count in counts:
                measured = cluster.load(work, count, options.seconds)
                if number > 0:
                    rounds[work, count].append(measured)
    for work in WORKS:
        for count in counts:
            runs = rounds[work, count]
            cpu = sorted(run["cpu"] for run in runs)
            slow = cluster.load(work, count, options.seconds, options.rate) if options.rate else None
            latency = f"{slow['p50']:.1f}, {slow['p99']:.1f}" if slow else ""
            busiest = statistics.median(run["busiest"] for run in runs)
            print(f"| {size} | {work} | {count} | {statistics.median(cpu):.0f} ({cpu[0]:.0f} to {cpu[-1]:.0f}) | "
                  f"{busiest:.0f}, {runs[-1]['thread']} | {statistics.median(run['rate'] for run in runs):.0f} | {latency} |", flush=True)


if __name__ == "__main__":
    main()
