#!/usr/bin/env python3
"""Our HTTP server beside nginx: CPU per request, memory of idle connections, honest clients among slow ones.

    swift build -c release --product stratus-bench
    Tests/Benchmarks/http-vs-nginx/run.py [--runs 5] [--seconds 3] [--only cpu|idle|slow]

Both servers run at the same time, one loop and one worker, pinned to the same core; the load generator (wrk)
has the other. The rounds alternate between them, so that whatever else the machine does hits both. CPU is what
the server's process used (user and system, from /proc) over the requests it answered. Everything listens on
the loopback; every process started here is ended here.
"""
import argparse, multiprocessing, os, re, resource, socket, ssl, statistics, subprocess, sys, tempfile, time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BENCH = os.environ.get("STRATUS_BENCH", os.path.join(ROOT, ".build/release/stratus-bench"))
TICK = os.sysconf("SC_CLK_TCK")
BODY = "a" * 300


def pin(core):
    return lambda: os.sched_setaffinity(0, {core})


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_bytes(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{pid}/status").read()).group(1)) * 1024


class Ours:
    name = "stratus"

    def __init__(self, directory, deadline=None):
        arguments = [BENCH, "http-server", "--certificates", directory]
        if deadline:
            arguments += ["--deadline", str(deadline)]
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=pin(0))
        self.pid = self.process.pid
        self.plain, self.tls = (self.process.stdout.readline().strip() for _ in range(2))

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)


class Nginx:
    name = "nginx"

    def __init__(self, directory):
        ports = []
        for _ in range(2):
            probe = socket.socket()
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
            probe.close()
        self.plain, self.tls = (f"127.0.0.1:{port}" for port in ports)
        configuration = os.path.join(directory, "nginx.conf")
        with open(configuration, "w") as file:
            file.write(f"""
daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid {directory}/nginx.pid; error_log {directory}/error.log;
events {{ worker_connections 16384; }}
http {{
  access_log off; keepalive_requests 100000000; client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
  server {{
    listen {self.plain} backlog=1024; listen {self.tls} ssl backlog=1024;
    ssl_certificate {directory}/server.pem; ssl_certificate_key {directory}/server.key; ssl_protocols TLSv1.3;
    location / {{ default_type text/plain; return 200 "{BODY}"; }}
  }}
}}""")
        self.process = subprocess.Popen(["nginx", "-c", configuration, "-p", directory], preexec_fn=pin(0),
                                        stderr=subprocess.DEVNULL)
        for _ in range(100):
            children = open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split()
            if children:
                break
            time.sleep(0.05)
        self.pid = int(children[0])

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


def wrk(url, seconds, script, connections=64):
    out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", script, url],
                         capture_output=True, text=True, preexec_fn=pin(1)).stdout
    failed = re.search(r"Non-2xx.*: (\d+)|Socket errors: (.*)", out)
    if failed:
        print("   wrk:", failed.group(0), file=sys.stderr)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", out)
    scale = {"us": 1e-3, "ms": 1, "s": 1e3}[p99.group(2)]
    return int(re.search(r"(\d+) requests in", out).group(1)), float(p99.group(1)) * scale


def measure_cpu(servers, runs, seconds, script):
    print(f"\n## CPU per request: 64 keep-alive connections, 300-byte POST, 300-byte answer, {runs} rounds of {seconds} s")
    for kind in ("plain", "tls"):
        figures = {server.name: [] for server in servers}
        rates = {server.name: [] for server in servers}
        for round in range(runs):
            for server in servers if round % 2 == 0 else servers[::-1]:
                scheme = "https" if kind == "tls" else "http"
                before = cpu_seconds(server.pid)
                count, _ = wrk(f"{scheme}://{getattr(server, kind)}/", seconds, script)
                figures[server.name].append((cpu_seconds(server.pid) - before) / count * 1e6)
                rates[server.name].append(count / seconds)
        medians = {name: statistics.median(values) for name, values in figures.items()}
        for name, values in figures.items():
            print(f"{kind:6} {name:8} median {medians[name]:6.2f} us/request   all {' '.join(f'{v:.2f}' for v in values)}"
                  f"   {statistics.median(rates[name]):.0f} requests/s")
        ratios = [ours / theirs for ours, theirs in zip(figures["stratus"], figures["nginx"])]
        print(f"{kind:6} ratio    median of rounds {statistics.median(ratios):.2f}   of medians {medians['stratus'] / medians['nginx']:.2f}")


def connect_all(address, count, context=None):
    host, port = address.split(":")
    sockets = []
    for _ in range(count):
        plain = socket.create_connection((host, int(port)), 10)
        sockets.append(context.wrap_socket(plain, server_hostname="localhost") if context else plain)
    return sockets


def measure_idle(servers, directory):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    print("\n## Memory of idle connections, each after one request")
    context = ssl.create_default_context(cafile=os.path.join(directory, "ca.pem"))
    request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
    for kind, count in (("plain", 10_000), ("tls", 2_000)):
        for server in servers:
            before = resident_bytes(server.pid)
            sockets = connect_all(getattr(server, kind), count, context if kind == "tls" else None)
            for connection in sockets:
                connection.sendall(request)
            for connection in sockets:
                connection.recv(4096)
            time.sleep(1)
            grown = resident_bytes(server.pid) - before
            print(f"{kind:6} {server.name:8} {count} connections: + {grown / 1e6:.1f} MB, {grown / count:.0f} bytes each")
            for connection in sockets:
                connection.close()
            time.sleep(1)


def slow_clients(address, count, stop, ready, totals):
    """A third sends its head one byte a second, a third its body, a third reads nothing; whoever is cut comes again.

    A process of its own on the generator's core, behind the honest clients in priority: what they wait for is the
    server, not this. The clients take turns over the second, as strangers do.
    """
    os.sched_setaffinity(0, {1})
    os.nice(19)
    host, port = address.split(":")
    slices = [{} for _ in range(100)]

    def open_one(number):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect((host, int(port)))
        connection.setblocking(False)
        kind = number % 3
        try:
            if kind == 0:
                connection.send(b"POST / HTTP/1.1\r\nhost: x\r\nx-slow: ")
            elif kind == 1:
                connection.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
            else:
                connection.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 400)
        except OSError:
            pass
        slices[number % len(slices)][connection] = number

    for number in range(count):
        open_one(number)
    ready.set()
    turn = 0
    next_turn = time.time()
    while not stop.is_set():
        members = slices[turn % len(slices)]
        for connection, number in list(members.items()):
            try:
                if number % 3 != 2:
                    connection.send(b"a")
                    if connection.recv(4096) == b"":
                        raise OSError
                else:
                    connection.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            except BlockingIOError:
                pass
            except OSError:
                connection.close()
                del members[connection]
                totals[1] += 1
                open_one(number)
            totals[0] += 1
        turn += 1
        next_turn += 1 / len(slices)
        time.sleep(max(0, next_turn - time.time()))
        # Turns that were missed are missed: nobody hurries to catch up.
        next_turn = max(next_turn, time.time() - 1 / len(slices))


def measure_slow(directory, runs, seconds, script, count=5_000):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    print(f"\n## {count} slow clients: p99 of 16 honest connections, {runs} rounds of {seconds} s without and with them")
    server = Ours(directory, deadline=5)
    try:
        p99 = {"without": [], "with": []}
        memory = []
        for _ in range(runs):
            p99["without"].append(wrk(f"http://{server.plain}/", seconds, script, connections=16)[1])
            alone = resident_bytes(server.pid)
            stop, ready, totals = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Array("l", 2)
            attackers = multiprocessing.Process(
                target=slow_clients, args=(server.plain, count, stop, ready, totals))
            attackers.start()
            ready.wait(60)
            time.sleep(2)
            began, before = time.time(), list(totals)
            p99["with"].append(wrk(f"http://{server.plain}/", seconds, script, connections=16)[1])
            span = time.time() - began
            memory.append(resident_bytes(server.pid) - alone)
            print(f"       {(totals[0] - before[0]) / span:.0f} slow sends a second, "
                  f"{(totals[1] - before[1]) / span:.0f} of them cut and come again")
            stop.set()
            attackers.join(60)
            time.sleep(1)
        for name, values in p99.items():
            print(f"{name:8} p99 median {statistics.median(values):.2f} ms   all {' '.join(f'{v:.2f}' for v in values)}")
        print(f"ratio    {statistics.median(p99['with']) / statistics.median(p99['without']):.2f}   "
              f"memory + {max(memory) / 1e6:.1f} MB")
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", choices=["cpu", "idle", "slow"])
    options = parser.parse_args()
    if not os.path.exists(BENCH):
        sys.exit("build first: swift build -c release --product stratus-bench")
    nginx = subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr.strip()
    print(f"{nginx}, kernel {os.uname().release}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
          f"commit {subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=ROOT, capture_output=True, text=True).stdout.strip()}")
    with tempfile.TemporaryDirectory(prefix="stratus-bench-") as directory:
        os.chmod(directory, 0o755)
        script = os.path.join(directory, "post.lua")
        with open(script, "w") as file:
            file.write(f'wrk.method = "POST"\nwrk.body = "{BODY}"\n')
        if options.only in (None, "cpu", "idle"):
            servers = [Ours(directory)]
            try:
                servers.append(Nginx(directory))
                if options.only in (None, "cpu"):
                    measure_cpu(servers, options.runs, options.seconds, script)
                if options.only in (None, "idle"):
                    measure_idle(servers, directory)
            finally:
                for server in servers:
                    server.stop()
        if options.only in (None, "slow"):
            measure_slow(directory, options.runs, options.seconds, script)


main()
