#!/usr/bin/env python3
"""Three nodes under more than they can do (G-26), and when all clients come back at once after an outage (G-27).

    swift build -c release
    Tests/Benchmarks/cluster-overload/run.py [--workload ycsb-a] [--seconds 10] [--times 3] [--json FILE]

1. As many clients as give the most, each waiting for its answer: the peak.
2. So many times the peak is due each second, from many clients that try again what is refused or not answered within two
   seconds. Useful is an operation that is done in the end. Meanwhile one more client looks at how refusals look.
3. Half the peak is due: how long until a second's slowest hundredth is below a hundred milliseconds, or what it was before.
4. The many clients, each waiting for its answer; then two of the three nodes are ended with SIGKILL, and started again
   after some seconds. All that wait try again as they find them. How long until 80 % of what was done before is done again,
   and the least that is done in a second from then on.

Clients and nodes share the machine. STRATUS_RELEASE names another folder of programs than .build/release.
"""
import argparse, collections, http.client, json, os, statistics, subprocess, tempfile, threading, time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
RELEASE = os.environ.get("STRATUS_RELEASE", os.path.join(ROOT, ".build/release"))


def cluster(directory, *words):
    done = subprocess.run([os.path.join(ROOT, "Deploy/cluster"), *words, "--directory", directory], capture_output=True,
                          text=True, env={"STRATUS_BINARY": f"{RELEASE}/stratus", **os.environ})
    if done.returncode != 0:
        raise SystemExit(f"Deploy/cluster {' '.join(words)}: {done.stderr}{done.stdout}")
    return done.stdout


class Load:
    def __init__(self, directory, facts, options):
        self.directory, self.options, self.count = directory, options, 0
        # Eight people, each with a partition of their own, so that all nodes lead some.
        self.words = [f"{RELEASE}/stratus-load", "run", *(word for url in facts["urls"] for word in ("--url", url)),
                      *(word for number in range(8) for word in ("--web-auth-token", f"stratus-user-{number}")),
                      "--api-token", facts["apiToken"], "--container", "iCloud.org.example.load", "--records", "2000",
                      "--workload", options.workload]

    def start(self, clients, seconds, rate=None):
        self.count += 1
        out = f"{self.directory}/load-{self.count}.json"
        words = [*self.words, "--clients", str(clients), "--seconds", str(seconds), "--json", out]
        if rate:
            words += ["--rate", str(int(rate))]
        if self.count > 1:
            words.append("--no-prepare")
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True), out

    def finish(self, process, out):
        _, errors = process.communicate()
        if process.returncode not in (0, 69):
            raise SystemExit(f"stratus-load: {errors}")
        with open(out) as file:
            return json.load(file)

    def run(self, *words):
        return self.finish(*self.start(*words))


class Probe:
    """Looks at the form of answers while others bring the load."""

    def __init__(self, facts):
        self.addresses = [url.split("//")[1] for url in facts["urls"]]
        self.path = (f"/database/1/iCloud.org.example.load/development/private/records/lookup?ckAPIToken={facts['apiToken']}"
                     "&ckWebAuthToken=stratus-user-0")
        self.seen, self.odd = collections.Counter(), []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.look, args=(number,)) for number in range(6)]
        for thread in self.threads:
            thread.start()

    def look(self, number):
        while not self.stopping.is_set():
            try:
                connection = http.client.HTTPConnection(self.addresses[number % 3], timeout=10)
                connection.request("POST", self.path, json.dumps({"records": [{"recordName": "load-1"}], "zoneID": {"zoneName": "load"}}))
                answer = connection.getresponse()
                text = answer.read().decode()
                connection.close()
            except (OSError, http.client.HTTPException) as error:
                self.seen[type(error).__name__] += 1
                continue
            # A record that cannot be had now is an error of its own in an answer of 200.
            again = [code for code in ("TRY_AGAIN_LATER", "THROTTLED") if code in text]
            self.seen[" ".join([str(answer.status), *again])] += 1
            if again and "retryAfter" not in text:
                self.odd.append(text[:200])
            if answer.status != 200 and (answer.status not in (429, 503) or not answer.getheader("Retry-After")):
                self.odd.append(f"{answer.status} {text[:200]}")
            self.stopping.wait(0.02)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def useful(report, skip=1):
    """Operations done in each whole second, without the first and the last."""
    return [second["done"] for second in report["seconds"][skip:-1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="ycsb-a")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--times", type=float, default=3)
    parser.add_argument("--clients", type=int, default=1500, help="that bring the overload")
    parser.add_argument("--outage", type=float, default=6, help="seconds without a majority")
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stratus-overload-", dir="/var/tmp") as directory:
        try:
            facts = json.loads(cluster(directory, "up", "--json", "--partitions", "16"))
            with open(f"{directory}/node-a/data/admin.token") as file:
                token = file.read().strip()
            load = Load(directory, facts, options)
            load.run(8, 2)
            peaks = {clients: statistics.median(useful(load.run(clients, options.seconds))) for clients in (64, 256, options.clients)}
            peak = max(peaks.values())
            print(f"peak: {peak:.0f}/s ({', '.join(f'{clients} clients {rate:.0f}/s' for clients, rate in peaks.items())})", flush=True)

            calm = load.run(128, options.seconds, peak / 2)
            before = statistics.median(second["p99"] for second in calm["seconds"][1:-1])
            print(f"at half of it: p99 of a second {before / 1000:.0f} ms", flush=True)

            probe = Probe(facts)
            over = load.run(options.clients, options.seconds, options.times * peak)
            probe.stop()
            done = useful(over, 2)
            print(f"{options.times:g} times the peak due, {options.clients} clients: {statistics.median(done):.0f}/s done, "
                  f"{100 * statistics.median(done) / peak:.0f} % of the peak, least {min(done)}/s; {over['triedAgain']} tries repeated, "
                  f"{over['failed']} failed {over['failures']}", flush=True)
            print(f"a client beside it saw {dict(probe.seen)}, of another form: {probe.odd[:2] or 'none'}", flush=True)

            back = load.run(128, options.seconds, peak / 2)
            good = max(2 * before, 100_000)
            late = [number for number, second in enumerate(back["seconds"][:-1]) if second["done"] and second["p99"] > good]
            print(f"back at half: below {good / 1000:.0f} ms after {late[-1] + 1 if late else 0} s", flush=True)

            process, out = load.start(options.clients, int(3 * options.outage + 24))
            time.sleep(8)
            for node in (2, 3):
                cluster(directory, "kill", str(node))
            ended = time.time()
            time.sleep(options.outage)
            starters = [subprocess.Popen([os.path.join(ROOT, "Deploy/cluster"), "start", str(node), "--directory", directory],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for node in (2, 3)]
            begun = time.time()
            for starter in starters:
                starter.wait()
            storm = load.finish(process, out)
            start = storm["startedMilliseconds"] / 1000
            normal = statistics.median(second["done"] for second in storm["seconds"][2:int(ended - start)])
            after = [(number, second["done"]) for number, second in enumerate(storm["seconds"][:-1]) if number + start >= begun]
            well = next((number for number, count in after if count >= 0.8 * normal), None)
            rest = [count for number, count in after if well is not None and number > well][:-1]
            print(f"{options.clients} clients, {normal:.0f}/s; two of three nodes gone for {options.outage:g} s: "
                  + (f"80 % of that {well + start + 1 - begun:.0f} s after their start, least from then on {min(rest)}/s, "
                     f"median {statistics.median(rest):.0f}/s" if well is not None else f"never 80 % of that again: {after}")
                  + f"; {storm['failed']} failed {storm['failures']}", flush=True)
            if options.json:
                with open(options.json, "w") as file:
                    json.dump({"peaks": peaks, "calm": calm, "over": over, "back": back, "storm": storm}, file)
        finally:
            cluster(directory, "down")


if __name__ == "__main__":
    main()
