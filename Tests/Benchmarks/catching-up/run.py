#!/usr/bin/env python3
"""How a follower catches up while others write: one that was away, one that lost its rows, and one that joins.

    swift build -c release
    Tests/Benchmarks/catching-up/run.py [--rate 5000] [--value-size 6000] [--records 60000] [--seconds 240] [--json FILE]

Three nodes hold one partition. An open loop of saves goes on at the same rate throughout. Node c is ended for 20 s; then it is
ended and loses its rows; then node d joins. Each time the program waits until the node lacks no more than a second's worth
of entries for three seconds, and prints how long that took, the share of the rate that was done, and the largest memory
and log of any node. Before the load it measures the same for lost rows without any: the time of an idle transfer.

plot.py beside it draws the file that --json writes. Every process started here is ended here. STRATUS_RELEASE names another folder of programs than .build/release.
"""
import argparse, glob, json, os, shutil, subprocess, tempfile, threading, time, urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
RELEASE = os.environ.get("STRATUS_RELEASE", os.path.join(ROOT, ".build/release"))
COUNT = {"a": 1, "b": 2, "c": 3, "d": 4}


def cluster(directory, *words):
    done = subprocess.run([os.path.join(ROOT, "Deploy/cluster"), *words, "--directory", directory], capture_output=True,
                          text=True, env={"STRATUS_BINARY": f"{RELEASE}/stratus", **os.environ})
    if done.returncode != 0:
        raise SystemExit(f"Deploy/cluster {' '.join(words)}: {done.stderr}{done.stdout}")
    return done.stdout


class Nodes:
    def __init__(self, directory):
        self.directory = directory
        self.samples = []

    def status(self, name):
        """What a node says of itself; None while it does not answer."""
        try:
            with open(f"{self.directory}/ports") as file:
                port = file.read().split()[3 * (COUNT[name] - 1) + 1]
            with open(f"{self.directory}/node-{name}/data/admin.token") as file:
                token = file.read().strip()
            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/status",
                                             headers={"Authorization": f"Bearer {token}"})
            return json.load(urllib.request.urlopen(request, timeout=2))
        except (OSError, ValueError, IndexError):
            return None

    def log_size(self, name):
        return sum(os.path.getsize(path) for path in glob.glob(f"{self.directory}/node-{name}/data/log/*.seg"))

    def sample(self, name, phase):
        """Entries that the node lacks of all partitions; None while it does not answer."""
        seen = {one: self.status(one) for one in COUNT if os.path.isdir(f"{self.directory}/node-{one}")}
        applied = {one: {part["name"]: part["applied"] for part in status["partitions"]}
                   for one, status in seen.items() if status}
        ends = {}
        for parts in applied.values():
            for part, index in parts.items():
                ends[part] = max(ends.get(part, 0), index)
        lag = None
        if name in applied:
            # What a joining node does not hold it does not follow.
            lag = sum(end - applied[name].get(part, 0) for part, end in ends.items())
        self.samples.append({
            "time": time.time(), "phase": phase, "lag": lag,
            "memory": {one: status["residentBytes"] for one, status in seen.items() if status},
            "log": {one: self.log_size(one) for one in seen}})
        return lag

    def catch_up(self, name, phase, enough, patience, is_changing=lambda: False):
        """Seconds until the node lacks no more than `enough` entries three times in a row; None: it never did.

        While `is_changing` says that replicas still move, it has not caught up."""
        began, good = time.time(), 0
        while time.time() - began < patience:
            lag = self.sample(name, phase)
            good = good + 1 if lag is not None and lag <= enough and not is_changing() else 0
            if good == 3:
                return time.time() - began - 2
            time.sleep(1)
        return None

    def lose_rows(self, name):
        for folder in glob.glob(f"{self.directory}/node-{name}/data/partitions/*"):
            # The system's partition stays: the node must know where it belongs.
            if os.path.basename(folder) != "00000":
                shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=5000, help="saves a second")
    parser.add_argument("--value-size", type=int, default=6000, help="bytes of text in a record")
    parser.add_argument("--records", type=int, default=60000)
    parser.add_argument("--away", type=int, default=20, help="seconds that node c is ended for")
    parser.add_argument("--patience", type=int, default=300, help="seconds to wait for each")
    parser.add_argument("--seconds", type=int, default=240, help="how long the load goes on")
    parser.add_argument("--json", help="every sample and the load by the second, into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stratus-catching-up-") as directory:
        load = None
        try:
            facts = json.loads(cluster(directory, "up", "--json", "--partitions", "1"))
            nodes = Nodes(directory)
            with open(f"{directory}/node-a/data/admin.token") as file:
                token = file.read().strip()
            schema = subprocess.run([f"{RELEASE}/stratus-load", "schema"], check=True, capture_output=True).stdout
            urllib.request.urlopen(urllib.request.Request(
                f"{facts['adminURLs'][0]}/v1/containers/iCloud.org.example.load/environments/development/schema",
                data=schema, headers={"Authorization": f"Bearer {token}"}, method="PUT"), timeout=10).read()
            # Not through c, which is ended.
            words = [f"{RELEASE}/stratus-load", "run", *(word for url in facts["urls"][:2] for word in ("--url", url)),
                     "--web-auth-token", "person0", "--api-token", facts["apiToken"], "--records", str(options.records),
                     "--value-size", str(options.value_size), "--workload", "save"]
            subprocess.run([*words, "--clients", "8", "--seconds", "1"], check=True, capture_output=True)
            print(f"{options.records * options.value_size / 1e6:.0f} MB of records", flush=True)
            results = {}

            def lose_rows():
                cluster(directory, "kill", "3")
                nodes.lose_rows("c")
                cluster(directory, "start", "3")

            lose_rows()
            results["idle"] = nodes.catch_up("c", "idle", 100, options.patience)
            load = subprocess.Popen(
                [*words, "--no-prepare", "--clients", "64", "--rate", str(options.rate), "--seconds", str(options.seconds),
                 "--json", f"{directory}/load.json"], stdout=subprocess.DEVNULL)
            began = time.time()
            time.sleep(10)
            cluster(directory, "kill", "3")
            for _ in range(options.away):
                nodes.sample("c", "away")
                time.sleep(1)
            cluster(directory, "start", "3")
            results["away"] = nodes.catch_up("c", "away", options.rate, options.patience)
            lose_rows()
            results["lost rows"] = nodes.catch_up("c", "lost rows", options.rate, options.patience)
            # Counted from the moment that d is started: c's share goes to it, since two copies are not enough.
            changing = threading.Thread(target=lambda: (cluster(directory, "add"), cluster(directory, "remove", "3")))
            changing.start()
            results["joins"] = nodes.catch_up("d", "joins", options.rate, options.patience, changing.is_alive)
            changing.join()
            finished = time.time() - began
            went_on = load.poll() is None
            # An open loop goes on until everything that it owes is done.
            load.wait(options.seconds + 60)
            for name, took in results.items():
                taken = [one for one in nodes.samples if one["phase"] == name]
                memory = max(max(one["memory"].values(), default=0) for one in taken) / 1e6
                log = max(max(one["log"].values(), default=0) for one in taken) / 1e6
                text = f"{took:.0f} s" if took is not None else "never"
                print(f"{name:10} caught up after {text}; at most {memory:.0f} MB of memory and {log:.0f} MB of log on a node")
            with open(f"{directory}/load.json") as file:
                measured = json.load(file)
            if not went_on and len(measured["seconds"]) < finished - 10:
                print(f"The load ended after {len(measured['seconds'])} s, before the last of them: ask for more --seconds.")
            # The first ten seconds are before node c ended: what the cluster does undisturbed.
            for name, begin, end in (("undisturbed", 0, 10), ("while they caught up", 10, int(finished))):
                done = [one["done"] for one in measured["seconds"][begin:end]]
                print(f"{name}: {sum(done) / max(1, len(done)):.0f} saves a second of {options.rate} asked for")
            if options.json:
                with open(options.json, "w") as file:
                    json.dump({"results": results, "loadBegan": began, "samples": nodes.samples,
                               "seconds": measured["seconds"]}, file)
        finally:
            if load and load.poll() is None:
                load.kill()
                load.wait()
            cluster(directory, "down")


if __name__ == "__main__":
    main()
