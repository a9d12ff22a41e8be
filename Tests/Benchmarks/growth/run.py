#!/usr/bin/env python3
"""What ten times as much of everything costs one node: its memory, its start after a crash, its rest.

    swift build -c release --product stratus
    Tests/Benchmarks/growth/run.py [--runs 3]

One node of real processes on the loopback (Deploy/cluster) holds zones of records of 300 letters, of people who are
spread over its partitions; then another holds ten and a hundred times as many records in each zone, another ten times as many zones,
another sixteen times as many partitions, whose number is a power of two. Each is filled in batches, rests, is ended with
SIGKILL and started again: the time until it is ready, and until the last record of every zone was read. Memory is resident.
Every process started here is ended here.
"""
import argparse, importlib.util, os, signal, statistics, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
specification = importlib.util.spec_from_file_location("size", os.path.join(HERE, "../cluster-size/run.py"))
size = importlib.util.module_from_spec(specification)
specification.loader.exec_module(size)

PEOPLE = 50
# Partitions, zones, records in each zone.
SHAPES = {
    "as it is": (32, 100, 100),
    "10 × the records": (32, 100, 1_000),
    "100 × the records": (32, 100, 10_000),
    "10 × the zones": (32, 1_000, 100),
    "16 × the partitions": (512, 100, 100),
}


def zone(number):
    return {"zoneName": f"zone{number}"}


def fill(cluster, number, records):
    """Makes one zone and its records; people have several."""
    person = f"person{number % PEOPLE}"
    made = cluster.ask(0, "zones/modify", person, {"operations": [{"operationType": "create", "zone": {"zoneID": zone(number)}}]})
    assert made and "zoneID" in made["zones"][0], made
    for first in range(0, records, 100):
        names = [f"record{name}" for name in range(first, first + 100)]
        saved = cluster.ask(0, "records/modify", person, {"zoneID": zone(number), "operations": [
            {"operationType": "forceUpdate", "record": {
                "recordType": "Note", "recordName": name, "fields": {"text": {"value": f"{name:x<300}"}}}} for name in names]})
        assert saved and all("recordChangeTag" in record for record in saved["records"]), saved


def read(cluster, number, records):
    """Whether the last record of a zone is there, once the node serves it."""
    for _ in range(1_200):
        answer = cluster.ask(0, "records/lookup", f"person{number % PEOPLE}", {
            "zoneID": zone(number), "records": [{"recordName": f"record{records - 1}"}]})
        if answer and "recordChangeTag" in answer["records"][0]:
            return True
        time.sleep(0.05)
    return False


def measure(directory, shape):
    partitions, zones, records = shape
    cluster = size.Cluster(directory, 1, partitions)
    try:
        time.sleep(2)
        empty = size.resident(cluster.pids)[0]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: fill(cluster, number, records), range(zones)))
            time.sleep(5)
            full = size.resident(cluster.pids)[0]
            idle = size.cpu_seconds(cluster.pids)
            time.sleep(10)
            idle = (size.cpu_seconds(cluster.pids) - idle) * 10
            os.kill(cluster.pids[0], signal.SIGKILL)
            begin = time.monotonic()
            cluster("up", "--json")
            ready = time.monotonic() - begin
            assert all(pool.map(lambda number: read(cluster, number, records), range(zones)))
            whole = time.monotonic() - begin
            return empty, full, idle, ready, whole, size.resident(cluster.pids)[0]
    finally:
        cluster("down")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    found = {name: [] for name in SHAPES}
    for number in range(options.runs):
        for name, shape in SHAPES.items():
            with tempfile.TemporaryDirectory(prefix="stratus-growth-") as directory:
                found[name].append(measure(directory, shape))
    print("| | partitions, zones, records | MiB empty | MiB full | % of a core idle | s to ready | s to all read | MiB then |")
    print("|---|---|---|---|---|---|---|---|")
    for name, runs in found.items():
        partitions, zones, records = SHAPES[name]
        median = [statistics.median(column) for column in zip(*runs)]
        print(f"| {name} | {partitions}, {zones}, {zones * records} | {median[0]:.0f} | {median[1]:.0f} | {median[2]:.1f} | "
              f"{median[3]:.2f} | {median[4]:.2f} | {median[5]:.0f} |")


if __name__ == "__main__":
    main()
