#!/usr/bin/env python3
"""How fast loaded partitions move to a node that joins, and what those who are served meanwhile feel of it.

    swift build -c release
    Tests/Benchmarks/cluster-move/run.py [--people 8] [--records 40000] [--value-size 300] [--rate 200] [--json FILE]

Three nodes hold the records of some people, each person's in a partition that others may share; then a fourth joins and gets
its share. An open loop of half saves, half look-ups goes on at the same rate before, during and after; the latencies
are its own, second by second. Moved is what the newcomer's partitions occupy at the end; the least that could have
moved is the same files where they came from. Every process started here is ended here.

STRATUS_RELEASE names another folder of programs than .build/release.
"""
import argparse, json, os, statistics, subprocess, tempfile, time, urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
RELEASE = os.environ.get("STRATUS_RELEASE", os.path.join(ROOT, ".build/release"))


def cluster(directory, *words):
    done = subprocess.run([os.path.join(ROOT, "Deploy/cluster"), *words, "--directory", directory], capture_output=True,
                          text=True, env={"STRATUS_BINARY": f"{RELEASE}/stratus", **os.environ})
    if done.returncode != 0:
        raise SystemExit(f"Deploy/cluster {' '.join(words)}: {done.stderr}{done.stdout}")
    return done.stdout


def size(directory, name, partitions):
    """MB of these partitions' rows on a node; write-ahead logs aside, which depend on the moment."""
    place = f"{directory}/node-{name}/data/partitions"
    # A folder is named after its group, and the system's comes first.
    folders = [f"{place}/{partition + 1:05}" for partition in partitions]
    return sum(os.path.getsize(f"{folder}/{file}") for folder in folders if os.path.isdir(folder)
               for file in os.listdir(folder) if not file.endswith("-wal")) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--records", type=int, default=40000, help="of each")
    parser.add_argument("--value-size", type=int, default=300, help="bytes of text in a record")
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=120, help="of load: 20 before the newcomer, 20 after it is done")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--json", help="latencies by the second and when the newcomer joined and was done, into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stratus-move-") as directory:
        try:
            facts = json.loads(cluster(directory, "up", "--json", "--partitions", str(options.partitions)))
            with open(f"{directory}/node-a/data/admin.token") as file:
                token = file.read().strip()
            schema = subprocess.run([f"{RELEASE}/stratus-load", "schema"], check=True, capture_output=True).stdout
            urllib.request.urlopen(urllib.request.Request(
                f"{facts['adminURLs'][0]}/v1/containers/iCloud.org.example.load/environments/development/schema",
                data=schema, headers={"Authorization": f"Bearer {token}"}, method="PUT"), timeout=10).read()
            words = [f"{RELEASE}/stratus-load", "run", *(word for url in facts["urls"] for word in ("--url", url)),
                     *(word for number in range(options.people) for word in ("--web-auth-token", f"person{number}")),
                     "--api-token", facts["apiToken"], "--records", str(options.records),
                     "--value-size", str(options.value_size), "--workload", "ycsb-a"]
            begin = time.monotonic()
            subprocess.run([*words, "--clients", "8", "--seconds", "1"], check=True, capture_output=True)
            print(f"{options.people * options.records} records saved in {time.monotonic() - begin:.0f} s", flush=True)
            time.sleep(5)
            seconds = options.seconds
            load = subprocess.Popen(
                [*words, "--no-prepare", "--clients", "64", "--rate", str(options.rate), "--seconds", str(seconds),
                 "--json", f"{directory}/load.json"], stdout=subprocess.DEVNULL)
            began = time.time()
            time.sleep(20)
            joined = time.time()
            cluster(directory, "add")
            while True:
                seen = json.loads(cluster(directory, "control", "partition", "list", "--json"))
                here = [int(one["partition"]) for one in seen["partitions"]
                        if one["partition"] != "system" and 4 in one["replicas"]]
                share = next(one["share"] for one in seen["nodes"] if one["node"] == 4)
                if not seen["moves"] and len(here) >= int(share):
                    break
                if time.time() - joined > seconds - 45:
                    raise SystemExit(f"not done: {len(here)} of {share} are there, {seen['moves']} under way")
                time.sleep(0.5)
            done = time.time()
            print(f"{len(here)} partitions moved in {done - joined:.1f} s", flush=True)
            load.wait(seconds + 60)
            with open(f"{directory}/load.json") as file:
                measured = json.load(file)
            moved = size(directory, "d", here)
            source = max(size(directory, name, here) for name in "abc")
            print(f"{moved:.0f} MB there, {source:.0f} MB where it came from: {moved / (done - joined):.1f} MB/s")
            start = measured["startedMilliseconds"] / 1000
            parts = {"before": (5, joined - start), "during": (joined - start, done - start),
                     "after": (done - start, done - start + 20)}
            for name, (first, last) in parts.items():
                part = measured["seconds"][int(first):int(last)]
                p99 = [one["p99"] / 1000 for one in part if one["done"]]
                print(f"{name:7} p99 of a second: median {statistics.median(p99):.1f} ms, worst {max(p99):.1f} ms; "
                      f"{sum(one['failed'] for one in part)} failed")
            if options.json:
                json.dump({"joined": joined - start, "done": done - start, "seconds": measured["seconds"]},
                          open(options.json, "w"))
        finally:
            cluster(directory, "down")


if __name__ == "__main__":
    main()
