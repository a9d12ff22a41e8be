#!/usr/bin/env python3
"""What more nodes cost: CPU of an operation at 1, 3 and 5 nodes, memory of nodes and of idle partitions, restarts.

    swift build -c release
    Tests/Benchmarks/cluster-size/run.py [--sizes 1,3,5] [--seconds 5] [--runs 3] [--partitions 256]

Each cluster is one of real processes on the loopback (Deploy/cluster), three replicas of each partition where
there are three nodes or more. 32 clients who are 64 people in all go through all of its nodes, so that partitions
everywhere take part and most requests are forwarded. CPU is user and system time of all nodes over the operations
answered; memory is resident. For the restart every partition is given a record first; then all nodes are ended with
SIGKILL and started at once, and every record is looked up. Every process started here is ended here.

STRATUS_RELEASE names another folder of programs than .build/release.
"""
import argparse, concurrent.futures, http.client, json, os, statistics, subprocess, sys, tempfile, threading, time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Support"))
import stratus

LOAD = os.path.join(stratus.RELEASE, "stratus-load")
BINARY = os.environ.get("STRATUS_BINARY", os.path.join(stratus.RELEASE, "stratus"))
WORKS = ["save", "lookup"]


def cpu_seconds(pids):
    return sum(stratus.cpu_seconds(pid) for pid in pids)


def resident(pids):
    """MiB of each process."""
    found = []
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            found.append(next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024)
    return found


class Cluster(stratus.Cluster):
    container = "iCloud.bench"

    def __init__(self, directory, size, partitions):
        super().__init__(directory, BINARY)
        self.size = size
        begin = time.monotonic()
        self.up("--nodes", str(size), "--partitions", str(partitions))
        self.formed = time.monotonic() - begin
        self.local = threading.local()
        self.prepared = set()

    @property
    def pids(self):
        return [self.pid(node) for node in range(self.size)]

    def ask(self, node, operation, user, body):
        """One request, on a connection each thread keeps; nothing when it failed."""
        kept, node = self.local.__dict__, node % self.size
        try:
            connection = kept.setdefault(self.addresses[node], self.connect(node, timeout=20))
            status, text = stratus.post_text(connection, self.path(operation, user), body)
            return json.loads(text) if status == 200 else None
        except (OSError, http.client.HTTPException):
            kept.pop(self.addresses[node], None)
            return None

    def load(self, work, seconds, file):
        urls = [word for url in self.facts["urls"] for word in ("--url", url)]
        people = [word for number in range(64) for word in ("--web-auth-token", f"person{number}")]
        before = cpu_seconds(self.pids)
        subprocess.run(
            [LOAD, "run", *urls, *people, "--api-token", self.facts["apiToken"],
             "--clients", "32", "--workload", work, "--seconds", str(seconds), "--records", "1000", "--json", file,
             *(["--no-prepare"] if work in self.prepared else [])], check=True, capture_output=True)
        self.prepared.add(work)
        with open(file) as opened:
            measured = json.load(opened)
        measured["cpu"] = (cpu_seconds(self.pids) - before) / measured["operations"] * 1e6
        return measured

    def prepare(self):
        """The load's own schema: the text of its records has no index."""
        self.define("iCloud.org.example.load", subprocess.run([LOAD, "schema"], check=True, capture_output=True).stdout)


def save(cluster, number):
    return cluster.ask(number, "records/modify", f"user{number}", {"operations": [{"operationType": "forceUpdate", "record": {
        "recordType": "Note", "recordName": "only", "fields": {"text": {"value": "x" * 300}}}}]})


def found(cluster, number):
    for attempt in range(600):
        answer = cluster.ask(number + attempt, "records/lookup", f"user{number}", {"records": [{"recordName": "only"}]})
        if answer and "recordChangeTag" in answer["records"][0]:
            return True
        time.sleep(0.05)
    return False


def restart(directory, size, partitions):
    """Memory with nothing open and with every partition open, and a restart of all."""
    cluster = Cluster(directory, size, partitions)
    try:
        time.sleep(2)
        empty = resident(cluster.pids)
        # So many people that hardly a partition is left without one.
        count = 7 * partitions
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert all(pool.map(lambda number: save(cluster, number), range(count)))
            time.sleep(5)
            opened = resident(cluster.pids)
            idle = cpu_seconds(cluster.pids)
            time.sleep(10)
            idle = (cpu_seconds(cluster.pids) - idle) / 10 / size
            for node in range(size):
                cluster.kill(node)
            begin = time.monotonic()
            cluster("up", "--json")
            ready = time.monotonic() - begin
            assert all(pool.map(lambda number: found(cluster, number), range(count)))
            whole = time.monotonic() - begin
        print(f"| {size} nodes, {partitions} partitions | formed and ready in {cluster.formed:.2f} s | "
              f"{max(empty):.0f} MiB a node at first, {max(opened):.0f} with {count} databases in all partitions | "
              f"{100 * idle:.2f} % of a core a node when idle | all killed: ready again after {ready:.2f} s, "
              f"all {count} records read after {whole:.2f} s |")
    finally:
        cluster("down")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1,3,5")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=256)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="stratus-size-") as directory:
        clusters = {}
        try:
            for size in sizes:
                clusters[size] = Cluster(f"{directory}/{size}", size, options.partitions)
                clusters[size].prepare()
            rounds = {(size, work): [] for size in sizes for work in WORKS}
            # The first is thrown away: it prepares, and opens what was never open.
            for number in range(options.runs + 1):
                for work in WORKS:
                    for size in sizes:
                        measured = clusters[size].load(work, options.seconds, f"{directory}/load.json")
                        if number > 0:
                            rounds[size, work].append(measured)
        finally:
            for cluster in clusters.values():
                cluster("down")
        print("| Work | Nodes | CPU of all nodes, µs an operation | operations/s | p50 ms | p99 ms |\n|---|---|---|---|---|---|")
        for work in WORKS:
            for size in sizes:
                found_here = rounds[size, work]
                cpu = [one["cpu"] for one in found_here]
                latency = [one["latencyMicroseconds"] for one in found_here]
                print(f"| {work} | {size} | {statistics.median(cpu):.0f} ({min(cpu):.0f}–{max(cpu):.0f}) | "
                      f"{statistics.median(one['operationsPerSecond'] for one in found_here):.0f} | "
                      f"{statistics.median(one['p50'] for one in latency) / 1000:.1f} | "
                      f"{statistics.median(one['p99'] for one in latency) / 1000:.1f} |")
        for size in sizes:
            restart(f"{directory}/restart-{size}", size, options.partitions)


if __name__ == "__main__":
    main()
