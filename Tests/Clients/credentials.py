"""Tokens, keys and accounts of nodes that are not for development, as an operator and a script meet them.

    credentials.py STRATUS DIRECTORY [NODES]

Starts `stratus serve`, NODES of them as one cluster (1: a node alone), and asks one after the other in turn. Makes
everything with `stratusctl`, signs requests with PyPI's `cryptography` after every row of what clients are known to sign,
and with PyPI's `ecdsa`, and looks for what was planted in everything the nodes wrote and in their memory."""

import base64
import datetime
import hashlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

try:
    import ecdsa
except ImportError:
    ecdsa = None

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Support"))
from stratus import Server, free_ports, make_certificates

stratus, directory = sys.argv[1:3]
count = int(sys.argv[3]) if len(sys.argv) > 3 else 1
work = pathlib.Path(directory)
failed = False
container = "iCloud.org.example.shelves"


def say(good, what, more=""):
    global failed
    failed = failed or not good
    print(("PASS" if good else "FAIL"), "credentials:", what, more if not good else "", flush=True)


class Node(Server):
    """One `stratus serve`, its data and its log in a directory of its own."""

    def __init__(self, name, peers):
        self.home = work / name
        self.home.mkdir()
        super().__init__(self.home / "data", self.home / "log", stratus)
        settings = {
            "client": {"listen": ["127.0.0.1:0"]}, "admin": {"listen": "127.0.0.1:0"},
            "log": {"format": "json", "level": "debug"}, "limits": {"privateDatabaseSizeMax": "1MiB"}}
        if peers:
            settings["cluster"] = self.member(name, work / "certificates", peers=peers, partitionCount=32)
        self.process = self.serve(self.configure(self.home / "stratus.json5", settings))

    def memory(self):
        """Every readable mapping of the process, one after the other: what a core dump would hold."""
        with open(f"/proc/{self.process.pid}/maps") as maps, open(f"/proc/{self.process.pid}/mem", "rb", 0) as memory:
            for line in maps:
                area = re.match(r"([0-9a-f]+)-([0-9a-f]+) r.* (\[v\S+\])?", line)
                if not area or "[v" in line:
                    continue
                start, end = int(area[1], 16), int(area[2], 16)
                try:
                    memory.seek(start)
                    yield memory.read(end - start)
                except (OSError, ValueError, OverflowError):
                    continue


def start():
    names = "abcdefghi"[:count]
    peers = []
    if count > 1:
        peers = [f"{name}@127.0.0.1:{port}" for name, port in zip(names, free_ports(count))]
        make_certificates(stratus, work / "certificates", ",".join(names))
    return [Node(name, peers) for name in names]


def control(*arguments, text=None):
    return next(turns).control(*arguments, given=text)


def ask(target, body=None, headers=None, method=None):
    request = urllib.request.Request(
        next(turns).url + target, None if body is None else body.encode(), headers or {}, method=method)
    request.add_header("Content-Type", "text/plain")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def stamp(minutes=0, end="Z"):
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
    return now.strftime("%Y-%m-%dT%H:%M:%S") + end


def signed(path, query="", body="", subpath=None, digest=None, date=None, key_id=None, key=None):
    date = date or stamp()
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() if digest is None else digest
    message = f"{date}:{digest}:{subpath or path}".encode()
    signature = base64.b64encode((key or private).sign(message, ec.ECDSA(hashes.SHA256()))).decode()
    return (path + ("?" + query if query else ""), body, {
        "X-Apple-CloudKit-Request-KeyID": key_id or server_key,
        "X-Apple-CloudKit-Request-ISO8601Date": date,
        "X-Apple-CloudKit-Request-SignatureV1": signature})


nodes = start()
turns = itertools.cycle(nodes)
try:
    for node in nodes:
        node.wait_ready()
    if count > 1:
        say(True, f"{count} nodes are one cluster; each request goes to the next of them")
    place = ("--container", container, "--environment", "development")
    schema = work / "app.ckdb"
    schema.write_text("""DEFINE SCHEMA
        CREATE ROLE Editors;
        RECORD TYPE Shelf ( "___recordID" REFERENCE QUERYABLE, label STRING QUERYABLE, of REFERENCE,
            GRANT WRITE TO "_creator", GRANT CREATE TO "_icloud", GRANT READ TO "_world" );
        RECORD TYPE Page ( title STRING, GRANT READ, CREATE, WRITE TO Editors );""")
    say(control("schema", "import", *place, str(schema)).returncode == 0, "a schema is imported")

    password = "planted-password-" + os.urandom(8).hex()
    say(control("user", "add", "--email", "mara@example.org", "--password-stdin",
                text=password + "\n").returncode == 0, "user add")
    say(control("user", "add", "--email", "mara@example.org").returncode != 0, "one account for an address")
    token = control("token", "create", *place, "--name", "web", "--names").stdout.strip()
    say(len(token) == 64, "token create prints 64 digits")
    user = control("user", "sign-in", "--email", "mara@example.org", *place).stdout.strip()
    say(user.startswith("s1_"), "user sign-in prints a web-auth token")

    base = f"/database/1/{container}/development"
    both = f"?ckAPIToken={token}&ckWebAuthToken={user}"
    say(ask(base + "/private/zones/list" + f"?ckAPIToken={token}", "{}")[0] == 421, "an API token alone: 421")
    say(ask(base + "/private/zones/list" + f"?ckAPIToken={'0' * 64}", "{}")[0] == 401, "an unknown one: 401")
    create = json.dumps({"operations": [{"operationType": "create", "record": {
        "recordType": "Shelf", "recordName": "one", "fields": {"label": {"value": "Atlases"}}}}]})
    answer = ask(base + "/private/records/modify" + both, create)
    say(answer[0] == 200 and "recordChangeTag" in answer[1]["records"][0], "a private save", answer)

    # Roles.
    page = json.dumps({"operations": [{"operationType": "create", "record": {
        "recordType": "Page", "recordName": "p", "fields": {}}}]})
    answer = ask(base + "/public/records/modify" + both, page)
    say(answer[1]["records"][0].get("serverErrorCode") == "ACCESS_DENIED", "without the role: denied", answer)
    say(control("role", "grant", *place, "--user", "mara@example.org", "Editors").returncode == 0, "role grant")
    why = control("explain-access", *place, "--type", "Page", "--user", "mara@example.org").stdout
    say("create: yes, granted to Editors" in why, "explain-access says why", why)
    time.sleep(1.1)
    answer = ask(base + "/public/records/modify" + both, page)
    say("recordChangeTag" in answer[1]["records"][0], "with the role: saved", answer)

    # Another container, shut and removed.
    old = ("--container", "iCloud.org.example.old", "--environment", "development")
    say(control("container", "create", *old, "--buckets", "4").returncode == 0, "container create --buckets")
    spare = control("token", "create", *old, "--name", "web").stdout.strip()
    control("user", "add", "--email", "nils@example.org")
    old_user = control("user", "sign-in", "--email", "nils@example.org", *old).stdout.strip()
    old_base = "/database/1/iCloud.org.example.old/development"
    old_both = f"?ckAPIToken={spare}&ckWebAuthToken={old_user}"
    control("schema", "import", *old, str(schema))
    for number in range(3):
        batch = json.dumps({"operations": [{"operationType": "create", "record": {
            "recordType": "Shelf", "recordName": f"{number}-{item}", "fields": {}}} for item in range(100)]})
        answer = ask(old_base + "/private/records/modify" + old_both, batch)
    say("recordChangeTag" in answer[1]["records"][0], "records in a container that will go", answer)
    me = ask(old_base + "/public/users/current" + old_both, "{}")[1]["userRecordName"]
    mine = ask(old_base + "/public/records/lookup" + old_both, json.dumps({"records": [{"recordName": me}]}))
    say(mine[1]["records"][0].get("recordType") == "Users", "one's own record, in its bucket", mine)

    def shelf(kind, name, fields=None):
        record = {"recordName": name, **({"recordType": "Shelf", "fields": fields} if fields is not None else {})}
        return {"operationType": kind, "record": record}

    def spread(operations):
        return ask(old_base + "/public/records/modify" + old_both, json.dumps({"operations": operations}))[1]["records"]

    leaves = [f"leaf{number}" for number in range(40)]
    reference = {"of": {"value": {"recordName": "root", "action": "DELETE_SELF"}}}
    answers = spread([shelf("create", "root", {})] + [shelf("create", leaf, reference) for leaf in leaves])
    say(all("recordChangeTag" in answer for answer in answers), "forty records of all buckets refer to one", answers)
    say(spread([shelf("forceDelete", "root")])[0].get("deleted"), "which goes")
    for _ in range(100):
        left = ask(old_base + "/public/records/lookup" + old_both,
                   json.dumps({"records": [{"recordName": leaf} for leaf in leaves]}))[1]["records"]
        if all(answer.get("serverErrorCode") == "NOT_FOUND" for answer in left):
            break
        time.sleep(0.1)
    say(all(answer.get("serverErrorCode") == "NOT_FOUND" for answer in left), "and they follow it", left)
    listed = json.loads(control("--json", "container", "list").stdout)["containers"]
    say({(row["container"], row["state"]) for row in listed} ==
        {(container, "active"), ("iCloud.org.example.old", "active")}, "container list", listed)
    shown = json.loads(control("--json", "container", "show", *old).stdout)
    say(shown["tokens"] == 1 and shown["users"] == 1 and shown["recordTypes"] >= 2 and shown["buckets"] == 4,
        "container show", shown)
    say(control("container", "delete", *old, "--confirm", "something else").returncode != 0,
        "container delete wants the name again")
    say(ask(old_base + "/private/zones/list" + old_both, "{}")[0] == 200, "and did nothing")
    say(control("container", "delete", *old, "--confirm", "iCloud.org.example.old", "--no-wait").returncode == 0,
        "container delete --no-wait")
    shut = time.monotonic()
    time.sleep(1.1)
    say({ask(old_base + "/private/zones/list" + old_both, "{}")[0] for _ in range(3)} == {401},
        "X-11: shut on every node within two seconds")
    say(ask(base + "/private/zones/list" + both, "{}")[0] == 200, "and no other container is")
    say(control("token", "create", *old, "--name", "again").returncode != 0, "nothing is added to it")

    # A quota, and what an owner and an administrator see of it.
    full = ("--container", "iCloud.org.example.full", "--environment", "development")
    control("container", "create", *full, "--buckets", "8")
    spare = control("token", "create", *full, "--name", "web").stdout.strip()
    control("schema", "import", *full, str(schema))
    people = []
    for name in ("rosa", "tove"):
        control("user", "add", "--email", f"{name}@example.org")
        people.append(control("user", "sign-in", "--email", f"{name}@example.org", *full).stdout.strip())
    full_base = "/database/1/iCloud.org.example.full/development"

    def put(who, name, kind="forceUpdate", size=100_000):
        return ask(full_base + f"/private/records/modify?ckAPIToken={spare}&ckWebAuthToken={people[who]}", json.dumps(
            {"operations": [{"operationType": kind, "record": {
                "recordType": "Shelf", "recordName": name, **({} if kind == "forceDelete" else
                    {"fields": {"label": {"value": "x" * size}}})}}]}))[1]["records"][0]

    def usage(who):
        return ask(full_base + f"/private/usage?ckAPIToken={spare}&ckWebAuthToken={people[who]}", "{}")[1]

    answers = [put(0, f"r{number}") for number in range(12)]
    saved = [answer for answer in answers if "recordChangeTag" in answer]
    say(len(saved) == 10 and {answer["serverErrorCode"] for answer in answers[10:]} == {"QUOTA_EXCEEDED"},
        "a tenth of a quota ten times, and no more", answers)
    told = usage(0)
    say(told["records"] == 10 and 1_000_000 < told["bytes"] <= told["bytesMax"] == 1 << 20, "usage says so", told)
    say("recordChangeTag" in put(1, "own", size=10) and usage(1)["records"] == 1, "others have quotas of their own")
    say(put(0, "r0", "forceDelete").get("deleted") and "recordChangeTag" in put(0, "r11"), "what goes makes room")
    say(ask(full_base + f"/private/usage?ckAPIToken={spare}", "{}")[0] == 421, "usage is its owner's")
    shown = json.loads(control("--json", "container", "usage", *full).stdout)
    # In the public database each has a record that stands for them.
    say(shown["users"] == 2 and [row["records"] for row in shown["databases"]] == [2, 10, 1] and
        shown["databases"][1]["bytes"] == usage(0)["bytes"] and
        shown["total"]["bytes"] == sum(row["bytes"] for row in shown["databases"]), "container usage", shown)
    # A third one, whose development begins anew.
    fresh = "iCloud.org.example.fresh"
    trial = ("--container", fresh, "--environment", "development")
    control("container", "create", *trial, "--buckets", "2")
    fresh_token = control("token", "create", *trial, "--name", "web").stdout.strip()
    fresh_users = []
    for email in ("nils@example.org", "olga@example.org", "pia@example.org"):
        control("user", "add", "--email", email)
        fresh_users.append(control("user", "sign-in", "--email", email, *trial).stdout.strip())
    fresh_base = f"/database/1/{fresh}/development"
    fresh_all = [f"?ckAPIToken={fresh_token}&ckWebAuthToken={one}" for one in fresh_users]
    control("schema", "import", *trial, str(schema))
    control("schema", "promote", "--container", fresh, "--confirm", fresh)
    more = work / "more.ckdb"
    more.write_text(schema.read_text().replace("label STRING QUERYABLE,", "label STRING QUERYABLE, weight INT64,"))
    say(control("schema", "import", *trial, str(more)).returncode == 0, "a field that production does not have")
    zone = {"zoneID": {"zoneName": "Attic"}}

    def shelves(value, name):
        return json.dumps({**zone, "operations": [{"operationType": "create", "record": {
            "recordType": "Shelf", "recordName": name, "fields": {"weight": {"value": value}}}}]})

    def save(both, value, name):
        answer = ask(fresh_base + "/private/records/modify" + both, shelves(value, name))
        return answer[1].get("records", [{}])[0]

    for both_ in fresh_all:
        ask(fresh_base + "/private/zones/modify" + both_,
            json.dumps({"operations": [{"operationType": "create", "zone": zone}]}))
        answer = save(both_, 7, "heavy")
    say("recordChangeTag" in answer, "is saved by three people", answer)
    answer = ask(fresh_base + "/private/changes/zone" + fresh_all[0], json.dumps({"zones": [zone]}))
    fresh_sync = answer[1]["zones"][0].get("syncToken")
    say(control("schema", "reset", *trial[:2]).returncode != 0 and
        control("schema", "reset", *trial[:2], "--confirm", "something else").returncode != 0 and
        control("schema", "reset", "--container", fresh, "--environment", "production", "--confirm",
                fresh).returncode != 0, "schema reset wants the name again, and never production's")
    lost = control("schema", "reset", *trial[:2], "--dry-run").stdout
    say("- Shelf.weight" in lost and "nothing was changed" in lost, "schema reset --dry-run says what goes", lost)
    say(save(fresh_all[0], 8, "light").get("recordChangeTag"), "and did nothing")

    def reset():
        node = next(turns)
        return subprocess.Popen(
            [*node.control_words(), "--json",
             "schema", "reset", *trial[:2], "--confirm", fresh], stdout=subprocess.PIPE, text=True)

    first = reset()
    time.sleep(2.5)
    answers = [ask(fresh_base + "/private/zones/list" + fresh_all[0], "{}") for _ in range(3)]
    say({(one[0], one[1].get("serverErrorCode"), one[1].get("retryAfter")) for one in answers} ==
        {(503, "TRY_AGAIN_LATER", 5)}, "while it lasts, every node says: later", answers)
    say(control("schema", "import", *trial, str(more)).returncode != 0, "and no schema is imported")
    first.kill()
    first.wait()
    second = reset()

    # Server-to-server.
    private = ec.generate_private_key(ec.SECP256R1())
    public = work / "public.pem"
    public.write_bytes(private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    added = control("key", "add", *place, "--name", "import", "--public-key", str(public))
    server_key = added.stdout.strip()
    say(len(server_key) == 64, "key add prints 64 digits", added)
    time.sleep(1.1)
    query, current = base + "/public/records/query", base + "/public/users/current"
    body = json.dumps({"query": {"recordType": "Shelf"}})
    js = "ckjsBuildVersion=2420ProjectDev22&ckjsVersion=2.6.4"
    for name, status, request in [
        ("CloudKit JS: path and query", 200, signed(query, js, body, query + "?" + js)),
        ("requests-cloudkit: path and query, no body", 200, signed(current, "a=1", "", current + "?a=1")),
        ("MistKit: an empty string for no body", 200, signed(current, digest="")),
        ("OpenCloudKit: path alone, a query beside it", 200, signed(query, "x=1", body)),
        ("OpenCloudKit on Linux: +00:00", 200, signed(query, "", body, date=stamp(end="+00:00"))),
        ("nine minutes ago", 200, signed(query, "", body, date=stamp(-9))),
        ("eleven minutes ago", 401, signed(query, "", body, date=stamp(-11))),
        ("eleven minutes ahead", 401, signed(query, "", body, date=stamp(11))),
        ("another key", 401, signed(query, "", body, key=ec.generate_private_key(ec.SECP256R1()))),
        ("an unknown key", 401, signed(query, "", body, key_id="0" * 64)),
        ("the private database", 401, signed(query.replace("public", "private"), "", body)),
        ("production", 401, signed(query.replace("development", "production"), "", body)),
        ("another path signed", 401, signed(query, "", body, base + "/public/records/lookup")),
    ]:
        target, content, headers = request
        answer = ask(target, content, headers, method="POST")
        say(answer[0] == status, f"{name}: {status}", answer)
    if ecdsa:
        # A second library, which shares no code with the first.
        other = ecdsa.SigningKey.from_pem(private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()))
        date = stamp()
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        headers = {"X-Apple-CloudKit-Request-KeyID": server_key, "X-Apple-CloudKit-Request-ISO8601Date": date}
        for what, text, status in [("signed by `ecdsa`", f"{date}:{digest}:{query}", 200),
                                   ("signed by `ecdsa` for another body", f"{date}:{digest[::-1]}:{query}", 401)]:
            for encode in [ecdsa.util.sigencode_der, ecdsa.util.sigencode_der_canonize]:
                made = other.sign(text.encode(), hashfunc=hashlib.sha256, sigencode=encode)
                answer = ask(query, body, headers | {
                    "X-Apple-CloudKit-Request-SignatureV1": base64.b64encode(made).decode()})
                say(answer[0] == status, f"{what}, {encode.__name__}: {status}", answer)
    else:
        print("SKIP credentials: `ecdsa` is not here")
    target, content, headers = signed(query, "", body)
    say(ask(target, content.replace("Shelf", "Shelg"), headers)[0] == 401, "one byte of the body altered: 401")

    modify = base + "/public/records/modify"
    unnamed = json.dumps({"operations": [{"operationType": "create", "record": {
        "recordType": "Shelf", "fields": {"label": {"value": "Once"}}}}]})
    request = signed(modify, "", unnamed)
    first, again = ask(*request), ask(*request)
    say(first[0] == 200 and first[1]["records"] == again[1]["records"],
        "a replayed create answers its first outcome", (first, again))
    found = ask(*signed(query, "", json.dumps({"query": {"recordType": "Shelf", "filterBy": [{
        "fieldName": "label", "comparator": "EQUALS", "fieldValue": {"value": "Once"}}]}})))
    say(found[0] == 200 and len(found[1]["records"]) == 1, "and was carried out once", found)

    # Revoking.
    say(control("key", "revoke", *place, server_key).returncode == 0, "key revoke")
    identifier = json.loads(control("--json", "token", "list", *place).stdout)["tokens"][0]["id"]
    say(ask(base + "/public/users/caller" + both)[0] == 200, "signed in")
    say(control("user", "sign-out", "--email", "mara@example.org").returncode == 0, "user sign-out")
    time.sleep(1.1)
    say(ask(*signed(query, "", body))[0] == 401, "the revoked key is refused within two seconds")
    say(ask(base + "/public/users/caller" + both)[0] == 421, "the session is over")
    say(control("token", "revoke", *place, identifier).returncode == 0, "token revoke")
    time.sleep(1.1)
    say(ask(base + "/public/users/caller" + both)[0] == 401, "the revoked token is refused")

    # A person's data, out and gone.
    archive = control("user", "export", "--email", "mara@example.org", *place)
    rows = [json.loads(line) for line in archive.stdout.splitlines()]
    say(rows and rows[0]["email"] == "mara@example.org" and
        {row["record"]["recordName"] for row in rows[1:]} >= {"one", "p", rows[0]["userRecordName"]},
        "user export prints every record as a line", archive)
    receipt = json.loads(control("--json", "user", "delete", "--email", "mara@example.org").stdout)
    say(receipt["containers"] == 1 and receipt["records"] == 2 and receipt["outstanding"],
        "user delete prints a receipt", receipt)
    say(control("user", "show", "--email", "mara@example.org").returncode != 0, "and nobody is left")

    audit = control("audit").stdout
    say(all(word in audit for word in ["user add", "token create", "key add", "role grant", "key revoke"]),
        "the audit trail has every change", audit)
    whole = control("audit", "--verify")
    say(whole.returncode == 0 and "whole" in whole.stdout, "and it is whole", whole.stdout)

    # The reset that somebody broke off is finished by the same command, asked of another node.
    done = json.loads(second.communicate(timeout=120)[0] or "{}")
    say(second.returncode == 0 and done.get("zones") == 3 and done.get("records", 0) >= 4,
        "schema reset removes every record", done)
    control("schema", "import", *trial, str(schema))
    exported = [control("schema", "export", "--container", fresh, "--environment", where).stdout
                for where in ("development", "production")]
    say(exported[0] == exported[1] and "weight" not in exported[0], "and its schema is production's", exported)
    time.sleep(1.1)
    for both_ in fresh_all:
        answer = ask(fresh_base + "/private/zones/list" + both_, "{}")
        say(answer[0] == 200 and [one["zoneID"]["zoneName"] for one in answer[1]["zones"]] == ["_defaultZone"],
            "who could get in gets in, and finds nothing", answer)
    ask(fresh_base + "/private/zones/modify" + fresh_all[0],
        json.dumps({"operations": [{"operationType": "create", "zone": zone}]}))
    answer = ask(fresh_base + "/private/changes/zone" + fresh_all[0],
                 json.dumps({"zones": [{**zone, "syncToken": fresh_sync}]}))
    say(answer[1]["zones"][0].get("serverErrorCode") == "BAD_REQUEST", "a token from before is refused", answer)
    answer = ask(fresh_base + "/public/users/current" + fresh_all[0])
    me = answer[1].get("userRecordName")
    answer = ask(fresh_base + "/public/records/lookup" + fresh_all[0], json.dumps({"records": [{"recordName": me}]}))
    say(answer[1]["records"][0].get("recordType") == "Users", "everybody has their own record again", answer)
    more.write_text(more.read_text().replace("weight INT64", "weight STRING"))
    say(control("schema", "import", *trial, str(more)).returncode == 0, "a field that went may come back otherwise")
    time.sleep(1.1)
    say(save(fresh_all[0], "heavy", "heavy").get("recordChangeTag"), "and is saved so")
    say(json.loads(control("--json", "container", "show", *trial).stdout)["state"] == "active", "container show")

    # Its public records go to production, with their creator; from buckets to one partition.
    wanted = [("moved", {"label": "Here"}, None), ("above", {}, "moved"), ("points", {}, "above")]
    for name, fields, target in wanted:
        values = {key: {"value": value} for key, value in fields.items()}
        if target:
            values["of"] = {"value": {"recordName": target, "action": "DELETE_SELF"}}
        answer = ask(fresh_base + "/public/records/modify" + fresh_all[0], json.dumps({"operations": [shelf("create", name, values)]}))
        say("recordChangeTag" in answer[1]["records"][0], f"a public record: {name}", answer)
    moving = ("container", "copy", "--container", fresh, "--from", "development", "--to", "production")
    say(control(*moving).returncode != 0, "container copy wants the name again")
    told = json.loads(control("--json", *moving, "--confirm", fresh).stdout)
    say(told["made"] == 3 and not told["refused"], "container copy makes what is missing in production", told)
    told = json.loads(control("--json", *moving, "--confirm", fresh).stdout)
    say((told["made"], told["there"]) == (0, 3), "and nothing twice", told)
    live = ("--container", fresh, "--environment", "production")
    live_token = control("token", "create", *live, "--name", "web", "--any-origin").stdout.split()[-1]
    live_user = control("user", "sign-in", "--email", "nils@example.org", *live).stdout.split()[-1]
    live_both = f"?ckAPIToken={live_token}&ckWebAuthToken={live_user}"
    live_base = f"/database/1/{fresh}/production/public/records"
    answer = ask(live_base + "/lookup" + live_both, json.dumps({"records": [{"recordName": name} for name, _, _ in wanted]}))
    found = answer[1].get("records", [{}])
    say(len(found) == 3 and found[0]["fields"]["label"]["value"] == "Here" and
        found[2]["fields"]["of"]["value"]["recordName"] == "above", "they are there", answer)
    answer = ask(live_base + "/modify" + live_both, json.dumps({"operations": [shelf("forceUpdate", "moved", {"label": {"value": "There"}})]}))
    say("recordChangeTag" in answer[1]["records"][0], "and their creator's", answer)

    # The other container is gone by now.
    time.sleep(max(0, shut + 33 - time.monotonic()))
    gone = json.loads(control("--json", "container", "delete", *old, "--confirm", "iCloud.org.example.old").stdout)
    say(gone["users"] == 1 and gone["records"] >= 300 and gone["outstanding"], "container delete removes the rest", gone)
    listed = json.loads(control("--json", "container", "list").stdout)["containers"]
    say(("iCloud.org.example.old", "erased") in {(row["container"], row["state"]) for row in listed}, "and says so", listed)
    say(control("container", "create", *old).returncode == 0, "its name can be used again")
    again = control("token", "create", *old, "--name", "web").stdout.strip()
    time.sleep(1.1)
    answers = [ask(old_base + "/private/zones/list" + f"?ckAPIToken={one}&ckWebAuthToken={old_user}", "{}")[0]
               for one in (spare, again)]
    say(answers == [401, 421], "with none of its tokens and sessions", answers)

    # Keys that seal.
    def standing(one):
        return {ask(base + f"/public/users/caller?ckAPIToken={sealed}&ckWebAuthToken={one}")[0] for _ in range(3)}

    sealed = control("token", "create", *place, "--name", "web").stdout.strip()
    signed_in = control("user", "sign-in", "--email", "nils@example.org", *place).stdout.strip()
    time.sleep(1.1)
    say(standing(signed_in) == {200}, "signed in, on every node")
    say(control("sealing-key", "rotate").returncode == 0, "sealing-key rotate")
    say(standing(signed_in) == {200}, "signs nobody out")
    say(control("sealing-key", "revoke", "--all").returncode == 0, "sealing-key revoke --all")
    time.sleep(2)
    say(standing(signed_in) == {421}, "ends every session's token, on every node")
    keys = json.loads(control("--json", "sealing-key", "list").stdout)["keys"]
    say([key["state"] for key in keys] == ["revoked", "revoked", "seals"], "sealing-key list", keys)
    signed_in = control("user", "sign-in", "--email", "nils@example.org", *place).stdout.strip()
    say(standing(signed_in) == {200}, "whoever signs in again is in, on every node")

    # Memory: what was used and is over.
    private_pem = private.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8,
                                        serialization.NoEncryption())
    over = {"password": password.encode(), "private key of a server": private_pem}
    for node in nodes:
        held = {what: 0 for what in over}
        size = 0
        try:
            for area in node.memory():
                size += len(area)
                for what, text in over.items():
                    held[what] += area.count(text)
        except PermissionError:
            print("SKIP credentials: this system does not let a process be read")
            break
        say(size > 1 << 20 and not any(held.values()),
            f"X-29: {size >> 20} MiB of a node's memory hold no {' and no '.join(over)}", held)
        limits = pathlib.Path(f"/proc/{node.process.pid}/limits").read_text()
        say(re.search(r"Max core file size +0 +0 ", limits), "X-29: a node that crashes leaves no core dump", limits)

    # A stop, and everything is still there.
    for node in nodes:
        node.process.terminate()
    say([node.process.wait(30) for node in nodes] == [0] * count, "the nodes stop")
    files = [path for path in work.rglob("*") if path.is_file()]
    tokens = {path.read_text().strip() for path in files if path.name == "admin.token"}
    planted = {"password": [password], "API token": [token, spare], "web-auth token": [user, old_user, signed_in],
               "administrators' token": tokens}
    for what, texts in planted.items():
        places = [str(path.relative_to(work)) for path in files for text in texts
                  if path.name != "admin.token" and text.encode() in path.read_bytes()]
        say(not places, f"X-09, X-14: no {what} in data files or log", places)
    hashed = hashlib.sha256(token.encode()).digest()
    places = [str(path) for path in files if hashed in path.read_bytes()]
    say(not places, "nor the token's plain hash: the stored one is keyed", places)
finally:
    for node in nodes:
        if node.process.poll() is None:
            node.process.kill()
        node.process.wait()
sys.exit(1 if failed else 0)
