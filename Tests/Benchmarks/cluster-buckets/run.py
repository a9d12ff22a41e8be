#!/usr/bin/env python3
"""What buckets gain and cost: saves, look-ups and sorted queries of one public database in 1, 4 and 16 buckets.

    swift build -c release
    Tests/Benchmarks/cluster-buckets/run.py [--buckets 1,4,16] [--seconds 5] [--runs 3] [--records 5000]

One cluster of three real processes on the loopback (Deploy/cluster) holds a container for each number of buckets, with
the same records and the same schema. 32 clients, who are one person, go through all three nodes. The numbers of buckets
take turns in every round, so that what else the machine does meets all of them; the first round is thrown away. CPU is
user and system time of all nodes over the operations answered; that of the busiest node says where a cluster of machines would
end first, which on one machine nothing else can show. At a low rate (--rate) latency is the work's own and
not that of a full machine. Every process started here is ended here.

STRATUS_RELEASE names another folder of programs than .build/release.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Support"))
import stratus
from stratus import RELEASE

WORKS = ["save", "lookup", "query"]


class Cluster(stratus.Cluster):
    def __init__(self, directory, counts, records):
        super().__init__(directory, os.environ.get("STRATUS_BINARY", f"{RELEASE}/stratus"))
        self.counts, self.records = counts, records

    def up(self):
        super().up("--partitions", "256")
        schema = subprocess.run([f"{RELEASE}/stratus-load", "schema"], check=True, capture_output=True).stdout
        for count in self.counts:
            self("control", "container", "create", "--container", self.name(count), "--buckets", str(count))
            self.define(self.name(count), schema)
            self.work("lookup", count, 1, f"{self.directory}/prepared.json")

    @staticmethod
    def name(count):
        return f"iCloud.org.example.buckets{count}"

    def cpu_seconds(self):
        """Of each node."""
        return [stratus.cpu_seconds(self.pid(node)) for node in range(3)]

    def work(self, work, count, seconds, file, *words):
        urls = [word for url in self.facts["urls"] for word in ("--url", url)]
        subprocess.run(
            [f"{RELEASE}/stratus-load", "run", *urls, "--api-token", self.facts["apiToken"], "--web-auth-token", "person",
             "--container", self.name(count), "--database", "public", "--clients", "32", "--workload", work,
             "--seconds", str(seconds), "--records", str(self.records), "--json", file, *words],
            check=True, capture_output=True)

    def load(self, work, count, seconds, *words):
        file = f"{self.directory}/load.json"
        before = self.cpu_seconds()
        self.work(work, count, seconds, file, "--no-prepare", *words)
        with open(file) as opened:
            measured = json.load(opened)
        spent = [(now - then) / measured["operations"] * 1e6 for now, then in zip(self.cpu_seconds(), before, strict=True)]
        measured["cpu"], measured["busiest"] = sum(spent), max(spent)
        return measured


def line(work, count, rate, rounds):
    cpu = [one["cpu"] for one in rounds]
    latency = [one["latencyMicroseconds"] for one in rounds]
    operations = [one["operationsPerSecond"] for one in rounds]
    failed = sum(one.get("failed", 0) for one in rounds)
    print(f"| {work} | {count} | {rate} | {statistics.median(cpu):.0f} ({min(cpu):.0f}–{max(cpu):.0f}) | "
          f"{statistics.median(one['busiest'] for one in rounds):.0f} | "
          f"{statistics.median(operations):.0f} ({min(operations):.0f}–{max(operations):.0f}) | "
          f"{statistics.median(one['p50'] for one in latency) / 1000:.1f} | "
          f"{statistics.median(one['p99'] for one in latency) / 1000:.1f} | {failed} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buckets", default="1,4,16")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--rate", type=int, default=50, help="operations a second of the part at a low rate")
    options = parser.parse_args()
    counts = [int(count) for count in options.buckets.split(",")]
    with tempfile.TemporaryDirectory(prefix="stratus-buckets-") as directory:
        cluster = Cluster(directory, counts, options.records)
        try:
            cluster.up()
            full = {(work, count): [] for work in WORKS for count in counts}
            low = {(work, count): [] for work in WORKS for count in counts}
            for number in range(options.runs + 1):
                for work in WORKS:
                    for count in counts:
                        measured = cluster.load(work, count, options.seconds)
                        if number > 0:
                            full[work, count].append(measured)
            for work in WORKS:
                for count in counts:
                    low[work, count].append(cluster.load(work, count, options.seconds, "--rate", str(options.rate)))
        finally:
            cluster("down")
    print("| Work | Buckets | Rate | CPU of all nodes, µs an operation | the busiest node's | operations/s | p50 ms | p99 ms | failed |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for work in WORKS:
        for count in counts:
            line(work, count, "full", full[work, count])
    for work in WORKS:
        for count in counts:
            line(work, count, f"{options.rate}/s", low[work, count])


if __name__ == "__main__":
    main()
