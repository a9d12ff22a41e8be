"""Tokens, keys and accounts of a node that is not for development, as an operator and a script meet them.

    credentials.py STRATUS STRATUSCTL DIRECTORY

Starts `stratus serve`, makes everything with `stratusctl`, signs requests with PyPI's `cryptography` after every
row of what clients are known to sign, and looks for what was planted in everything the node wrote."""

import base64
import datetime
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

stratus, stratusctl, directory = sys.argv[1:4]
work = pathlib.Path(directory)
failed = False
container = "iCloud.org.example.shelves"


def say(good, what, more=""):
    global failed
    failed = failed or not good
    print(("PASS" if good else "FAIL"), "credentials:", what, more if not good else "", flush=True)


data = work / "data"
(work / "stratus.json5").write_text(json.dumps({
    "dataDirectory": str(data), "client": {"listen": ["127.0.0.1:0"]}, "admin": {"listen": "127.0.0.1:0"},
    "log": {"format": "json", "level": "debug"}}))
log = open(work / "log", "wb")
node = subprocess.Popen([stratus, "serve", "--config", str(work / "stratus.json5")], stderr=log, stdout=log)


def lines():
    return [json.loads(line) for line in (work / "log").read_text().splitlines() if line.startswith("{")]


def address(text):
    for _ in range(200):
        for line in lines():
            if line.get("text") == text:
                return line["url"]
        time.sleep(0.05)
    raise SystemExit("FAIL credentials: the node did not start: " + (work / "log").read_text()[-500:])


def control(*arguments, text=None):
    return subprocess.run(
        [stratusctl, "--node", admin, "--token-file", str(data / "admin.token"), *arguments],
        input=text, capture_output=True, text=True)


def ask(target, body=None, headers=None, method=None):
    request = urllib.request.Request(
        url + target, None if body is None else body.encode(), headers or {}, method=method)
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


try:
    url, admin = address("clients"), address("administrators")
    place = ("--container", container, "--environment", "development")
    schema = work / "app.ckdb"
    schema.write_text("""DEFINE SCHEMA
        CREATE ROLE Editors;
        RECORD TYPE Shelf ( "___recordID" REFERENCE QUERYABLE, label STRING QUERYABLE,
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
    receipt = json.loads(control("user", "delete", "--email", "mara@example.org").stdout)
    say(receipt["containers"] == 1 and receipt["records"] == 2 and receipt["outstanding"],
        "user delete prints a receipt", receipt)
    say(control("user", "show", "--email", "mara@example.org").returncode != 0, "and nobody is left")

    audit = control("audit").stdout
    say(all(word in audit for word in ["user add", "token create", "key add", "role grant", "key revoke"]),
        "the audit trail has every change", audit)
    whole = control("audit", "--verify")
    say(whole.returncode == 0 and "whole" in whole.stdout, "and it is whole", whole.stdout)

    # A stop, and everything is still there.
    node.send_signal(signal.SIGTERM)
    say(node.wait(30) == 0, "the node stops")
    planted = {"password": password, "API token": token, "web-auth token": user,
               "administrators' token": (data / "admin.token").read_text().strip()}
    for what, text in planted.items():
        places = [str(path.relative_to(work)) for path in [*data.rglob("*"), work / "log"]
                  if path.is_file() and path.name != "admin.token" and text.encode() in path.read_bytes()]
        say(not places, f"X-09, X-14: no {what} in data files or log", places)
    hashed = hashlib.sha256(token.encode()).digest()
    places = [str(path) for path in data.rglob("*") if path.is_file() and hashed in path.read_bytes()]
    say(not places, "nor the token's plain hash: the stored one is keyed", places)
finally:
    if node.poll() is None:
        node.kill()
    node.wait()
sys.exit(1 if failed else 0)
