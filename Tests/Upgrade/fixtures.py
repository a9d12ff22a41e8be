#!/usr/bin/env python3
"""Data directories that earlier releases wrote, kept small, and opened by today's build in every run (O-05, M-22).

    Tests/Upgrade/fixtures.py open STRATUS            every fixture is opened, read back, written to and finalised
    Tests/Upgrade/fixtures.py make STRATUS NAME       STRATUS, a build of that release, writes NAME-alone and NAME-cluster

A fixture is `fixtures/NAME.tar.xz`: the directories of its nodes, the cluster's secret, and `facts.json`, which says what
must be found: records of two zones and of the public database, accounts, an API token, a web-auth token, sync tokens.
The first one is written by release 0.1.0: earlier builds were no releases, and their directories are refused.
"""
import json, lzma, os, pathlib, shutil, subprocess, sys, tarfile, tempfile, time
import urllib.error, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "Support"))
import stratus

FIXTURES = HERE / "fixtures"
CONTAINER = "iCloud.org.example.kept"
PLACE = ("--container", CONTAINER, "--environment", "development")
SCHEMA = """DEFINE SCHEMA
    RECORD TYPE Shelf ( "___recordID" REFERENCE QUERYABLE, label STRING QUERYABLE SEARCHABLE, number INT64 QUERYABLE SORTABLE,
        of REFERENCE, GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world" );"""


class Node(stratus.Server):
    def __init__(self, program, home, name, peers):
        super().__init__(home / f"node-{name}", home / f"{name}.log", program)
        cluster = self.member(name, home / "certificates", home / "secret", peers=peers) if peers else {}
        path = self.configure(home / f"{name}.json5", {
            "loopCount": 1, "client": {"listen": ["127.0.0.1:0"]}, "admin": {"listen": "127.0.0.1:0"},
            "cluster": {"partitionCount": 4, **cluster}})
        (home / f"{name}.log").write_bytes(b"")
        self.process = self.serve(path)

    def control(self, *words, text=None):
        done = super().control(*words, given=text)
        if done.returncode != 0:
            sys.exit(f"stratusctl {' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout.strip()

    def ask(self, path, tokens, body):
        """Again while the node says so: a cluster elects its leaders first."""
        database, operation = path.split("/", 1)
        for _ in range(200):
            request = urllib.request.Request(
                self.url + stratus.path(operation, tokens["api"], tokens["user"], CONTAINER, database),
                json.dumps(body).encode(), {"Content-Type": "text/plain"})
            try:
                with urllib.request.urlopen(request) as answer:
                    said = json.load(answer)
            except urllib.error.HTTPError as error:
                said = json.load(error)
            if "TRY_AGAIN_LATER" not in json.dumps(said):
                return said
            time.sleep(0.1)
        sys.exit(f"{path}: {said}")


def start(program, home, names):
    peers = []
    if len(names) > 1:
        peers = [f"{name}@127.0.0.1:{port}" for name, port in zip(names, stratus.free_ports(len(names)))]
        made = home / "certificates"
        if not made.exists():
            stratus.make_certificates(program, made, ",".join(names))
        if not (home / "secret").exists():
            shutil.copy(made / "secret", home / "secret")
        os.chmod(home / "secret", 0o600)
    nodes = [Node(program, home, name, peers) for name in names]
    for node in nodes:
        node.wait_ready()
    return nodes


def shelf(name, number, zone=None, **fields):
    record = {"recordType": "Shelf", "recordName": name,
              "fields": {"label": {"value": f"Label {number}"}, "number": {"value": number}, **fields}}
    return {"operationType": "create", "record": record}


def saved(answer, count):
    if len(answer.get("records", [])) != count or any("recordChangeTag" not in one for one in answer["records"]):
        sys.exit(f"not saved: {answer}")


# --- Making one


def make(program, name):
    FIXTURES.mkdir(exist_ok=True)
    for kind, names in (("alone", "a"), ("cluster", "abc")):
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder)
            nodes = start(program, home, names)
            facts = {"release": subprocess.run([program, "--version"], capture_output=True, text=True).stdout.splitlines()[0],
                     "nodes": names, "madeSeconds": int(time.time()), **fill(nodes[0])}
            for node in nodes:
                node.stop()
            (home / "facts.json").write_text(json.dumps(facts, indent=1, sort_keys=True))
            path = FIXTURES / f"{name}-{kind}.tar.xz"
            with lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
                for entry in ["facts.json", "secret", *(f"node-{one}" for one in names)]:
                    if (home / entry).exists():
                        tar.add(home / entry, entry, filter=nobody)
            print(f"{path.name}: {path.stat().st_size >> 10} KiB")


def nobody(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def fill(node):
    with tempfile.NamedTemporaryFile("w", suffix=".ckdb") as schema:
        schema.write(SCHEMA)
        schema.flush()
        node.control("container", "create", *PLACE, "--buckets", "4")
        node.control("schema", "import", *PLACE, schema.name)
    node.control("user", "add", "--email", "mara@example.org", "--password-stdin", text="kept for ever, word by word\n")
    node.control("user", "add", "--email", "nils@example.org")
    tokens = {"api": node.control("token", "create", *PLACE, "--name", "web", "--names"),
              "user": node.control("user", "sign-in", "--email", "mara@example.org", *PLACE)}
    zone = {"zoneName": "Books"}
    made = node.ask("private/zones/modify", tokens, {"operations": [{"operationType": "create", "zone": {"zoneID": zone}}]})
    if "syncToken" not in json.dumps(made) and "zones" not in made:
        sys.exit(f"no zone: {made}")
    saved(node.ask("private/records/modify", tokens, {"zoneID": zone, "operations": [shelf(f"book-{n}", n) for n in range(20)]}), 20)
    saved(node.ask("private/records/modify", tokens, {"operations": [shelf(f"note-{n}", n) for n in range(5)]}), 5)
    first = node.ask("private/changes/zone", tokens, {"zones": [{"zoneID": zone}]})["zones"][0]
    marks = {"books": first["syncToken"]}
    tags = {one["recordName"]: one["recordChangeTag"] for one in first["records"]}
    # Behind the token: what a client that comes back must be told, and nothing else.
    changed = node.ask("private/records/modify", tokens, {"zoneID": zone, "operations": [
        {"operationType": "delete", "record": {"recordName": "book-3", "recordChangeTag": tags["book-3"]}},
        {"operationType": "update", "record": {"recordType": "Shelf", "recordName": "book-4", "recordChangeTag": tags["book-4"],
                                               "fields": {"label": {"value": "Another label"}}}}]})
    if any("serverErrorCode" in one for one in changed["records"]):
        sys.exit(f"not changed: {changed}")
    leaf = {"of": {"value": {"recordName": "root", "action": "DELETE_SELF"}}}
    saved(node.ask("public/records/modify", tokens, {"operations": [
        shelf("root", 0), *(shelf(f"leaf-{n}", n, **leaf) for n in range(12))]}), 13)
    after = node.ask("private/changes/zone", tokens, {"zones": [{"zoneID": zone}]})["zones"][0]
    return {"tokens": tokens, "marks": marks, "me": node.ask("public/users/current", tokens, {})["userRecordName"],
            "books": {one["recordName"]: one["fields"]["label"]["value"] for one in after["records"] if not one.get("deleted")}}


# --- Opening one


def check(good, what, more=""):
    if not good:
        sys.exit(f"{what}: {json.dumps(more)[:600]}")


def read_back(node, facts):
    """Everything that the fixture's release had acknowledged."""
    zone = {"zoneName": "Books"}
    # A web-auth token lives for 26 hours: later the account itself has to be good for another.
    tokens = dict(facts["tokens"])
    if time.time() - facts["madeSeconds"] > 20 * 3600:
        tokens["user"] = node.control("user", "sign-in", "--email", "mara@example.org", *PLACE)
    facts["tokens"] = tokens
    me = node.ask("public/users/current", tokens, {})
    check(me.get("userRecordName") == facts["me"], "the token is another user's", me)
    zones = node.ask("private/zones/list", tokens, {})
    check({one["zoneID"]["zoneName"] for one in zones["zones"]} >= {"Books"}, "zones", zones)
    feed = node.ask("private/changes/zone", tokens, {"zones": [{"zoneID": zone}]})["zones"][0]
    books = {one["recordName"]: one["fields"]["label"]["value"] for one in feed["records"] if not one.get("deleted")}
    check(books == facts["books"], "records of a zone", books)
    since = node.ask("private/changes/zone", tokens, {"zones": [{"zoneID": zone, "syncToken": facts["marks"]["books"]}]})
    told = {one["recordName"]: bool(one.get("deleted")) for one in since["zones"][0].get("records", [])}
    check(told == {"book-3": True, "book-4": False}, "what changed behind a sync token", since)
    notes = node.ask("private/records/lookup", tokens, {"records": [{"recordName": f"note-{n}"} for n in range(5)]})
    check([one["fields"]["number"]["value"] for one in notes["records"]] == list(range(5)), "the default zone", notes)
    found = node.ask("public/records/query", tokens, {"query": {"recordType": "Shelf", "sortBy": [{"fieldName": "number"}]}})
    check(len(found.get("records", [])) == 13, "a query of the public database", found)
    users = node.control("user", "list")
    check("mara@example.org" in users and "nils@example.org" in users, "accounts", users)


def open_one(program, path):
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        with lzma.open(path) as packed, tarfile.open(fileobj=packed) as tar:
            tar.extractall(home, filter="fully_trusted")
        facts = json.loads((home / "facts.json").read_text())
        nodes = start(program, home, facts["nodes"])
        try:
            for node in nodes:
                read_back(node, facts)
            saved(nodes[0].ask("private/records/modify", facts["tokens"], {"operations": [shelf("of today", 1)]}), 1)
            if len(nodes) > 1:
                finalise(nodes)
                for node in nodes:
                    read_back(node, facts)
        finally:
            for node in nodes:
                node.stop()
        # What today's build has written, it reads again.
        nodes = start(program, home, facts["nodes"])
        try:
            read_back(nodes[-1], facts)
        finally:
            for node in nodes:
                node.stop()
    print(f"{path.name}: written by {facts['release']}, read back, written to, finalised and read back again")


def finalise(nodes):
    until = time.monotonic() + 60
    while True:
        standing = json.loads(nodes[0].control("--json", "upgrade", "status"))
        if standing["canFinalise"]:
            break
        check(time.monotonic() < until, "the nodes do not announce their level", standing)
        time.sleep(0.2)
    check(standing["featureLevel"] == 1, "a fixture of level 1", standing)
    nodes[0].control("upgrade", "finalise", "--anyway")
    standing = json.loads(nodes[0].control("--json", "upgrade", "status"))
    check(standing["isFinalised"] and standing["featureLevel"] == standing["buildLevel"], "finalised", standing)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "make":
        return make(os.path.abspath(sys.argv[2]), sys.argv[3])
    if len(sys.argv) != 3 or sys.argv[1] != "open":
        sys.exit(__doc__)
    found = sorted(FIXTURES.glob("*.tar.xz"))
    check(found, "there are no fixtures")
    for path in found:
        open_one(os.path.abspath(sys.argv[2]), path)


if __name__ == "__main__":
    main()
