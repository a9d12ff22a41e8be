#!/usr/bin/env python3
"""WebDAV of one node beside apache2's mod_dav, nginx with dav-ext and lighttpd's module, on one machine in one run.

    apt-get install apache2-bin nginx-light libnginx-mod-http-dav-ext lighttpd-mod-webdav wrk
    swift build -c release --product stratus
    Tests/Benchmarks/documents-vs-dav/run.py [--runs 3] [--seconds 2] [--root DIR] [--only WORK,...]

All servers run at the same time on the loopback over HTTP without TLS, with their files on one disk; the rounds alternate
between them. wrk drives them with 64 connections (PROPFIND: 8). Stratus puts every PUT on disk before it answers; the
others sync nothing. So they run a second time with their files on a file system that is mounted `sync`, where the machine
has one (a loop device, as root). --root names a directory with the unpacked Debian packages, where they are not installed.
Every process started here is ended here.
"""
import argparse, http.client, json, os, re, shutil, statistics, subprocess, sys, tempfile, time, urllib.parse, urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
CONTAINER = "iCloud.org.example.stratus"
QUIET = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Server:
    """A web server over a folder. `sync` names one on a file system that is mounted so."""
    query = ""

    def __init__(self, directory, port, root, files=None):
        self.home = os.path.join(directory, self.name)
        os.makedirs(self.home)
        self.files = files or os.path.join(self.home, "files")
        for folder in (self.files, os.path.join(self.home, "body"), os.path.join(self.files, "d")):
            os.makedirs(folder, exist_ok=True)
        self.port, self.root = port, root
        self.url = f"http://127.0.0.1:{port}"
        environment = dict(os.environ, LD_LIBRARY_PATH=f"{root}/usr/lib/x86_64-linux-gnu" if root else "")
        self.process = subprocess.Popen(self.words(), env=environment, stdout=subprocess.DEVNULL,
                                        stderr=open(os.path.join(self.home, "errors"), "w"))
        for _ in range(100):
            try:
                self.ask("GET", "/d/")
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{self.name} does not start: {open(os.path.join(self.home, 'errors')).read()}")

    def config(self, text):
        path = os.path.join(self.home, "conf")
        with open(path, "w") as file:
            file.write(text)
        return path

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, self.base + path + self.query, body, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    base = ""

    def destination(self, path):
        return self.url + self.base + path

    def fill(self, folder, count):
        """Makes a folder of so many files of 4 KiB, past the server where that is possible."""
        os.makedirs(os.path.join(self.files, folder), exist_ok=True)
        for number in range(count):
            with open(os.path.join(self.files, folder, f"f{number:05d}"), "wb") as file:
                file.write(b"x" * 4096)
        os.chmod(os.path.join(self.files, folder), 0o777)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Apache(Server):
    name = "apache2"

    def words(self):
        modules = f"{self.root}/usr/lib/apache2/modules"
        load = "\n".join(f"LoadModule {name}_module {modules}/mod_{name}.so" for name in ("mpm_event", "authz_core", "dav", "dav_fs"))
        return [f"{self.root}/usr/sbin/apache2", "-DFOREGROUND", "-f", self.config(f"""{load}
ServerRoot {self.home}
PidFile {self.home}/pid
DefaultRuntimeDir {self.home}
ErrorLog {self.home}/errors
Listen 127.0.0.1:{self.port}
ServerName localhost
User nobody
Group nogroup
KeepAlive On
MaxKeepAliveRequests 0
ThreadsPerChild 64
MaxRequestWorkers 128
DocumentRoot {self.files}
DavLockDB {self.home}/locks
<Directory {self.files}>
Dav On
Require all granted
</Directory>
""")]


class Nginx(Server):
    name = "nginx"

    def words(self):
        return [shutil.which("nginx") or "/usr/sbin/nginx", "-p", self.home, "-g", "daemon off;", "-c", self.config(f"""
load_module {self.root}/usr/lib/nginx/modules/ngx_http_dav_ext_module.so;
user root;
worker_processes 2;
pid {self.home}/pid;
error_log {self.home}/errors;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_max_body_size 200m;
  client_body_buffer_size 64k;
  client_body_temp_path {self.files}/../body;
  server {{
    listen 127.0.0.1:{self.port};
    root {self.files};
    location / {{ dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS; create_full_put_path on; }}
  }}
}}
""")]


class Lighttpd(Server):
    name = "lighttpd"

    def words(self):
        return [f"{self.root}/usr/sbin/lighttpd", "-D", "-m", f"{self.root}/usr/lib/lighttpd", "-f", self.config(f"""
server.modules = ( "mod_webdav" )
server.document-root = "{self.files}"
server.bind = "127.0.0.1"
server.port = {self.port}
server.errorlog = "{self.home}/errors"
server.upload-dirs = ( "{self.home}/body" )
server.max-keep-alive-requests = 0
server.max-worker = 2
server.max-connections = 512
webdav.activate = "enable"
""")]


class Stratus(Server):
    name = "stratus"

    def __init__(self, directory):
        binary = os.environ.get("STRATUS_BINARY", os.path.join(ROOT, ".build/release/stratus"))
        self.process = subprocess.Popen(
            [binary, "dev", "--json", "--listen", "127.0.0.1:0", "--data", os.path.join(directory, "stratus")],
            stdout=subprocess.PIPE, stderr=open(os.path.join(directory, "stratus.log"), "w"), text=True)
        line = json.loads(self.process.stdout.readline())
        self.url = line["url"].rstrip("/")
        self.port = urllib.parse.urlparse(self.url).port
        self.base = f"/dav/{line['container']}/development/Documents"
        self.json = f"{self.url}/documents/1/{line['container']}/development"
        self.query = f"?ckAPIToken={line['apiToken']}&ckWebAuthToken=stratus-user-bench"
        self.ask("MKCOL", "/d")

    def fill(self, folder, count):
        self.ask("MKCOL", f"/{folder}")
        for start in range(0, count, 200):
            body = {"device": "bench", "now": 1, "operations": [
                {"operation": "create", "path": f"Documents/{folder}", "name": f"f{number:05d}", "content": "eHh4" * 1365}
                for number in range(start, min(start + 200, count))]}
            # The path is looked up for each operation.
            request = urllib.request.Request(f"{self.json}/items/modify{self.query}", json.dumps(body).encode())
            urllib.request.urlopen(request, timeout=60).read()


def wrk(server, script, seconds, connections, directory):
    path = os.path.join(directory, "script.lua")
    with open(path, "w") as file:
        file.write(script)
    out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", path, server.url],
                         capture_output=True, text=True).stdout
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    errors = re.search(r"Socket errors: (.*)", out)
    if bad or "Requests/sec" not in out:
        print(f"({server.name}: not all answers were good, so this round does not count:\n{script}\n{out})", file=sys.stderr)
        return None
    if errors:
        print(f"({server.name}: socket errors: {errors[1]})", file=sys.stderr)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))


def script(work, server, turn):
    where = server.base + "/"
    if work == "PUT of 4 KiB":
        return f"""local n = 0; local body = string.rep("x", 4096)
function request() n = n + 1
  return wrk.format("PUT", string.format("{where}d/p{turn}-%d{server.query}", n), {{}}, body) end"""
    if work == "GET of 4 KiB":
        return f"""function request()
  return wrk.format("GET", string.format("{where}thousand/f%05d{server.query}", math.random(0, 999))) end"""
    body = '<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/><getetag/></prop></propfind>'
    return f"""function request()
  return wrk.format("PROPFIND", "{where}thousand/{server.query}", {{["Depth"]="1", ["Content-Type"]="application/xml"}}, '{body}') end"""


def timed(work):
    began = time.monotonic()
    status = work()
    took = (time.monotonic() - began) * 1000
    return took, status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--root", default="")
    parser.add_argument("--only", default="put,get,propfind,folders,large")
    options = parser.parse_args()
    only = options.only.split(",")
    directory = tempfile.mkdtemp()
    os.chmod(directory, 0o755)
    servers, synced, image = [], [], None

    def table(rounds, of):
        names = [server.name for server in of]
        print(f"| | {' | '.join(names)} | stratus to each, median of the runs |\n|{' --- |' * (len(names) + 2)}", flush=True)
        for work, results in rounds.items():
            good = {name: [rate for rate in results[name] if rate] for name in names}
            pairs = {name: [a / b for a, b in zip(results["stratus"], results[name]) if a and b] for name in names[1:]}
            cells = [f"{statistics.median(good[name]):.0f} ({min(good[name]):.0f}–{max(good[name]):.0f})" if good[name] else "–" for name in names]
            ratios = [f"{statistics.median(pairs[name]):.2f}" if pairs[name] else "–" for name in names[1:]]
            print(f"| {work} a second | {' | '.join(cells)} | {', '.join(ratios)} |", flush=True)

    try:
        servers.append(Stratus(directory))
        for kind, port in ((Apache, 18181), (Nginx, 18182), (Lighttpd, 18183)):
            servers.append(kind(directory, port, options.root))
        for server in servers[1:]:
            subprocess.run(["chmod", "-R", "a+rwX", server.home])
        for server in servers:
            server.fill("thousand", 1_000)
        works = [work for word, work in (("put", "PUT of 4 KiB"), ("get", "GET of 4 KiB"), ("propfind", "PROPFIND of 1,000")) if word in only]
        rounds = {work: {server.name: [] for server in servers} for work in works}
        for turn in range(options.runs):
            for work in works:
                for server in servers:
                    rounds[work][server.name].append(
                        wrk(server, script(work, server, turn), options.seconds, 8 if "PROPFIND" in work else 64, directory))
        table(rounds, servers)
        if "folders" in only:
            print("| of a folder of 10,000 files | MOVE, ms, median of 6 (slowest) | DELETE, ms, answered |\n| --- | --- | --- |")
            for server in servers:
                server.fill("many", 10_000)
                moves = []
                for number in range(6):
                    a, b = (f"/many{'' if number % 2 == 0 else '2'}", f"/many{'2' if number % 2 == 0 else ''}")
                    # Some want folders with a slash behind them.
                    slash = "/" if server.name in ("nginx", "lighttpd") else ""
                    took, status = timed(lambda: server.ask("MOVE", a + slash, None, Destination=server.destination(b + slash)))
                    assert status in (200, 201, 204), (server.name, status)
                    moves.append(took)
                took, status = timed(lambda: server.ask("DELETE", "/many" + slash))
                print(f"| {server.name} | {statistics.median(moves):.1f} ({max(moves):.1f}) | {took:.1f} (status {status}) |", flush=True)
        if "large" in only:
            big, back = os.path.join(directory, "big"), os.path.join(directory, "back")
            with open(big, "wb") as file:
                file.write(os.urandom(64 << 20))
            print("| 64 MiB, MiB a second, median | up | down |\n| --- | --- | --- |")
            for server in servers:
                up, down = [], []
                for number in range(options.runs):
                    url = f"{server.url}{server.base}/big{number}{server.query}"
                    for words, into in ((["-T", big, "-H", "Expect:", "-o", os.devnull], up), (["-o", back], down)):
                        done = subprocess.run(["curl", "-s", "-w", "%{time_total} %{http_code}", *words, url], capture_output=True, text=True)
                        seconds, status = done.stdout.split()
                        assert status in ("200", "201", "204"), (server.name, status)
                        into.append(64 / float(seconds))
                print(f"| {server.name} | {statistics.median(up):.0f} | {statistics.median(down):.0f} |", flush=True)
        if "put" in only:
            place = os.path.join(directory, "synced")
            os.makedirs(place)
            image = os.path.join(directory, "image")
            subprocess.run(["truncate", "-s", "2G", image], check=True)
            made = subprocess.run(["mkfs.ext4", "-q", "-F", image], **QUIET).returncode == 0 and subprocess.run(
                ["mount", "-o", "loop,sync", image, place], **QUIET).returncode == 0
            if not made:
                print("no file system could be mounted `sync` here")
                return
            os.chmod(place, 0o777)
            synced = [kind(os.path.join(directory, "s"), port, options.root, os.path.join(place, kind.name))
                      for kind, port in ((Apache, 18191), (Nginx, 18192), (Lighttpd, 18193))]
            subprocess.run(["chmod", "-R", "a+rwX", place, os.path.join(directory, "s")])
            both = [servers[0]] + synced
            work = "PUT of 4 KiB"
            rounds = {work: {server.name: [] for server in both}}
            for turn in range(options.runs):
                for server in both:
                    rounds[work][server.name].append(wrk(server, script(work, server, f"s{turn}"), options.seconds, 64, directory))
            print("beside them on a file system that is mounted sync:")
            table(rounds, both)
    finally:
        for server in servers + synced:
            server.stop()
        if image:
            subprocess.run(["umount", os.path.join(directory, "synced")], **QUIET)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
