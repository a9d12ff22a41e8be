"""Files of records against a real node, with curl as the client of the bytes.

    assets.py BINARY WORK

Uploads, saves, reads back, replaces and deletes files; kills the node in the middle of uploads and after them; and
searches the data directory for planted plain text. One PASS or FAIL line for each step.
"""

import hashlib
import base64
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Support"))
import stratus

BINARY, WORK = sys.argv[1], sys.argv[2]
DATA = os.path.join(WORK, "data")
SALT = b"com.apple.XattrObjectSalt\0com.apple.DataObjectSalt\0"
# Half of the large file does not compress: its bytes would show if they were not sealed.
NOISE = random.Random(1).randbytes(32 << 20)
MARK = b"a planted plain text that no disk may show "
# Of encrypted fields, and of a plain one beside them, which shows that the search finds what is there.
SECRET = b"a planted secret of an encrypted field 5a17"
PLAIN = b"a plain field that the rows do show 5a17"
failures = 0


def step(name, is_good, detail=""):
    global failures
    if not is_good:
        failures += 1
    print(("PASS" if is_good else "FAIL"), "assets:", name, "" if is_good else f"({detail})", flush=True)
    return is_good


class Node(stratus.Node):
    def __init__(self, **settings):
        super().__init__(DATA, program=BINARY, log=open(os.path.join(WORK, "node.log"), "ab"), settings={
            "STRATUS_LOG_LEVEL": "info", **{f"STRATUS_{key}": value for key, value in settings.items()}})
        self.token = self.facts["webAuthToken"]

    def api(self, operation, body, database="private", token=None):
        url = self.url + self.path(operation, token or self.token, database=database)
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "text/plain"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def stop(self):
        return super().stop(30)

    def memory(self):
        """The most that the process has had resident since the last call of `forget`, in bytes."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) << 10

    def forget(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as file:
            file.write("5")
        return self.memory()


def curl(*arguments, body=None):
    """Status, headers and body."""
    result = subprocess.run(
        ["curl", "--silent", "--show-error", "--globoff", "--include", "--max-time", "120", *arguments],
        input=body, capture_output=True)
    head, _, rest = result.stdout.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, rest = rest.partition(b"\r\n\r\n")
    lines = head.decode(errors="replace").split("\r\n")
    status = int(lines[0].split()[1]) if lines[0] else 0
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return status, headers, rest


def checksum(data):
    return base64.b64encode(b"\1" + hashlib.sha1(SALT + data).digest()).decode()


def tickets(node, *tokens, database="private"):
    status, answer = node.api("assets/upload", {"tokens": list(tokens)}, database)
    assert status == 200, answer
    return answer["tokens"]


def upload(node, data, record="book", field="cover", *arguments):
    url = tickets(node, {"recordType": "Book", "recordName": record, "fieldName": field})[0]["url"]
    status, _, body = curl(*arguments, "--data-binary", "@-", url, body=data)
    assert status == 200, (status, body)
    return json.loads(body)["singleFile"]


def save(node, record, value, field="cover", kind="forceUpdate", database="private"):
    status, answer = node.api("records/modify", {"operations": [{"operationType": kind, "record": {
        "recordName": record, "recordType": "Book", "fields": {field: value}}}]}, database)
    return answer["records"][0] if status == 200 else answer


def lookup(node, record, field="cover", database="private"):
    _, answer = node.api("records/lookup", {"records": [{"recordName": record}]}, database)
    return answer["records"][0].get("fields", {}).get(field, {}).get("value")


def delete(node, record):
    _, answer = node.api(
        "records/modify", {"operations": [{"operationType": "forceDelete", "record": {"recordName": record}}]})
    return answer["records"][0].get("deleted") is True


def download(value, name="f", *arguments):
    return curl(*arguments, value["downloadURL"].replace("${f}", name))


def packs():
    total = 0
    for folder, _, files in os.walk(os.path.join(DATA, "assets")):
        total += sum(os.path.getsize(os.path.join(folder, name)) for name in files if name.endswith(".pack"))
    return total


def holders(text):
    """Files of the data directory that hold these bytes."""
    found = []
    for folder, _, files in os.walk(DATA):
        for name in files:
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as file:
                    if text in file.read():
                        found.append(path)
            except FileNotFoundError:
                pass
    return found


def fields(node):
    """Encrypted fields: saved, read back, and still there for the search at the end."""
    secret = SECRET.decode()
    sent = {
        "text": {"value": secret, "type": "STRING", "isEncrypted": True},
        "list": {"value": [secret, "x"], "type": "STRING_LIST", "isEncrypted": True},
        "bytes": {"value": base64.b64encode(SECRET).decode(), "type": "ENCRYPTED_BYTES"},
        "place": {"value": {"latitude": 1.5, "longitude": 2}, "type": "LOCATION", "isEncrypted": True},
        "open": {"value": PLAIN.decode(), "type": "STRING"},
    }
    record = {"recordType": "Vault", "recordName": "vault", "fields": sent}
    operations = {"operations": [{"operationType": "create", "record": record}]}
    status, saved = node.api("records/modify", operations)
    got = saved["records"][0].get("fields", {}) if status == 200 else {}
    step("encrypted fields of four types are saved",
         all(got.get(name, {}).get("value") == value["value"] for name, value in sent.items())
         and [name for name in sorted(got) if got[name].get("isEncrypted")] == ["bytes", "list", "place", "text"]
         and got["bytes"]["type"] == "ENCRYPTED_BYTES", saved)
    _, public = node.api("records/modify", operations, database="public")
    step("the public database takes none", public["records"][0].get("serverErrorCode") == "BAD_REQUEST", public)


def read_fields(node):
    _, answer = node.api("records/lookup", {"records": [{"recordName": "vault"}]})
    got = answer["records"][0].get("fields", {})
    return got.get("text", {}).get("value") == SECRET.decode() and got["list"]["value"][0] == SECRET.decode()


def planted():
    """Files of the data directory that hold the planted text."""
    found = []
    for folder, _, files in os.walk(DATA):
        for name in files:
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as file:
                    data = file.read()
                    if MARK in data or any(NOISE[at : at + 32] in data for at in (0, 100_000, 20_000_000)):
                        found.append(path)
            except FileNotFoundError:
                pass
    return found


def basics(node):
    data = MARK * 500
    answers = tickets(
        node, {"recordType": "Book", "recordName": "one", "fieldName": "cover"},
        {"recordType": "Book", "fieldName": "scan"})
    step("tickets come in order, and a missing name is drawn",
         [a["fieldName"] for a in answers] == ["cover", "scan"] and answers[0]["recordName"] == "one"
         and len(answers[1]["recordName"]) == 36 and "%" not in answers[0]["url"])
    status, answer = node.api("assets/upload", {"tokens": [{"recordType": "Book", "fieldName": "c"}] * 201})
    step("201 tokens are refused", status == 400 and answer["serverErrorCode"] == "BAD_REQUEST", answer)

    sums = []
    raw = upload(node, data, "one")
    sums.append(raw["fileChecksum"])
    form = upload(node, data, "one", "cover", "--header", "Content-Type: application/x-www-form-urlencoded")
    sums.append(form["fileChecksum"])
    path = os.path.join(WORK, "file")
    with open(path, "wb") as file:
        file.write(data)
    url = tickets(node, {"recordType": "Book", "recordName": "one", "fieldName": "cover"})[0]["url"]
    status, _, body = curl("--form", f"files=@{path};filename=file.file;type=application/octet-stream", url)
    sums.append(json.loads(body)["singleFile"]["fileChecksum"])
    status, _, body = curl("--request", "PUT", "--data-binary", "@-", url, body=data)
    sums.append(json.loads(body).get("singleFile", {}).get("fileChecksum"))
    step("raw, form-typed, multipart and PUT give the same checksum", set(sums) == {checksum(data)}, sums)

    saved = save(node, "one", {"value": raw})
    value = lookup(node, "one")
    step("a receipt attaches, and a read has a link and no receipt",
         "fields" in saved and value and value["downloadURL"].endswith("/${f}") and "receipt" not in value
         and value["size"] == len(data), saved)
    for name in ["${f}", "$%7Bf%7D", "a%20b.png", ""]:
        status, headers, body = download(value, name)
        step(f"a download as {name!r} has the bytes", status == 200 and body == data, status)
    step("a download is sandboxed", headers["content-security-policy"].startswith("sandbox")
         and headers["x-content-type-options"] == "nosniff" and headers["access-control-allow-origin"] == "*", headers)
    status, headers, body = download(value, "a.html")
    step("what a browser would run is an attachment",
         headers["content-disposition"].startswith("attachment") and headers["content-type"] == "application/octet-stream")
    tag = headers["etag"]
    status, headers, body = download(value, "f", "--range", "100-199")
    step("a range", status == 206 and body == data[100:200]
         and headers["content-range"] == f"bytes 100-199/{len(data)}", (status, headers))
    status, _, body = download(value, "f", "--range", "-7")
    step("a suffix", status == 206 and body == data[-7:], status)
    status, headers, _ = download(value, "f", "--range", f"{len(data)}-")
    step("a range behind the end", status == 416 and headers["content-range"] == f"bytes */{len(data)}", headers)
    status, _, body = download(value, "f", "--range", "0-1,5-6")
    step("several ranges give the whole", status == 200 and body == data, status)
    status, _, body = download(value, "f", "--header", f"If-None-Match: {tag}")
    step("a known tag gives 304", status == 304 and body == b"", status)
    status, _, body = download(value, "f", "--range", "0-9", "--header", "If-Range: \"other\"")
    step("a range of another version gives the whole", status == 200 and body == data, status)
    status, headers, body = download(value, "f", "--head")
    step("HEAD has the length", status == 200 and headers["content-length"] == str(len(data)) and body == b"", headers)

    status, _, body = curl(value["downloadURL"].replace("/d/", "/d/A"))
    step("an altered link is refused", status == 403, status)
    status, _, body = curl("--data-binary", "x", node.facts["url"] + "/assets/u/AAAA")
    step("an unknown ticket is refused", status == 403, status)
    status, _, body = curl("--data-binary", "x", value["downloadURL"].replace("/d/", "/u/").replace("/${f}", ""))
    step("a link is no ticket", status == 403, status)
    status, headers, _ = curl("--request", "OPTIONS", "--header", "Origin: https://a.example",
                              "--header", "Access-Control-Request-Method: PUT", url)
    step("a preflight is answered", status == 204 and "PUT" in headers["access-control-allow-methods"], headers)

    back = save(node, "one", {"value": value})
    step("what was read can be written back", "fields" in back, back)
    step("and keeps its bytes", download(lookup(node, "one"))[2] == data)
    wrong = save(node, "two", {"value": {"fileChecksum": value["fileChecksum"], "size": value["size"]}})
    step("without a receipt nothing else is saved", wrong.get("serverErrorCode") == "BAD_REQUEST", wrong)
    wrong = save(node, "two", {"value": dict(raw, receipt=raw["receipt"][:-8] + "AAAAAAAA")})
    step("an altered receipt is refused", wrong.get("serverErrorCode") == "BAD_REQUEST", wrong)
    other = node.facts["otherWebAuthToken"]
    status, answer = node.api("records/modify", {"operations": [{"operationType": "create", "record": {
        "recordName": "two", "recordType": "Book", "fields": {"cover": {"value": raw}}}}]}, token=other)
    wrong = answer["records"][0]
    step("another user's receipt is refused", wrong.get("serverErrorCode") == "BAD_REQUEST", wrong)

    listed = [upload(node, MARK + bytes([n]) * 1000, "list", "scans") for n in range(3)]
    save(node, "list", {"value": listed, "type": "ASSET_LIST"}, "scans")
    values = lookup(node, "list", "scans")
    step("a list of files", [download(v)[2] for v in values] == [MARK + bytes([n]) * 1000 for n in range(3)])
    save(node, "list", {"value": values[1:], "type": "ASSETID_LIST"}, "scans")
    step("a shorter list of what was read", len(lookup(node, "list", "scans")) == 2)

    status, answer = node.api("assets/rereference", {"assets": [
        {"recordName": "one", "fieldName": "cover"}, {"recordName": "none", "fieldName": "cover"}]})
    first, second = answer["assets"]
    step("a file can be referred to again, and each failure is its own",
         "receipt" in first and second["serverErrorCode"] == "NOT_FOUND", answer)
    save(node, "copy", {"value": first})
    step("deleting the first record", delete(node, "one"))
    step("keeps the bytes for the second", download(lookup(node, "copy"))[2] == data)
    cleared = save(node, "copy", {"value": None})
    step("null clears", "fields" in cleared and lookup(node, "copy") is None, cleared)

    for size in [0, 1, 262143, 262144, 262145, 600000]:
        body = random.Random(size).randbytes(size)
        save(node, "sized", {"value": upload(node, body, "sized")})
        step(f"{size} bytes", download(lookup(node, "sized"))[2] == body)
    delete(node, "sized")

    ticket = tickets(node, {"recordType": "Book", "recordName": "p", "fieldName": "cover"}, database="public")[0]
    body = json.loads(curl("--data-binary", "@-", ticket["url"], body=data)[2])["singleFile"]
    save(node, "p", {"value": body}, database="public")
    step("in the public database", download(lookup(node, "p", database="public"))[2] == data)
    status, usage = node.api("usage", {})
    step("usage counts files", usage.get("assets", 0) > 0 and usage["assetBytes"] > 0, usage)


def large(node):
    # Text and noise: one compresses, the other does not.
    data = (MARK * 800_000)[: 32 << 20] + NOISE
    path = os.path.join(WORK, "large")
    with open(path, "wb") as file:
        file.write(data)
    before = node.forget()
    url = tickets(node, {"recordType": "Book", "recordName": "large", "fieldName": "cover"})[0]["url"]
    start = time.monotonic()
    status, _, body = curl("--upload-file", path, url)
    took = time.monotonic() - start
    value = json.loads(body)["singleFile"]
    step(f"64 MiB in {took:.1f} s", status == 200 and value["fileChecksum"] == checksum(data), status)
    save(node, "large", {"value": value})
    value = lookup(node, "large")
    got = os.path.join(WORK, "got")
    with open(got, "wb") as file:
        subprocess.run(["curl", "--silent", "--globoff", value["downloadURL"]], stdout=file)
    with open(got, "rb") as file:
        step("64 MiB come back", file.read() == data)
    grown = (node.memory() - before) >> 20
    step(f"one at a time grew the process by {grown} MiB, 48 at most", grown <= 48, grown)
    status, _, body = curl("--range", "33554400-33554499", value["downloadURL"])
    step("a range over two chunks", body == data[33554400:33554500], status)
    os.remove(path)
    os.remove(got)


def killed(node):
    """Kills the node while clients upload. Every receipt that was answered saves, and every byte comes back."""
    answered = []
    lock = threading.Lock()

    def client(number):
        source = random.Random(number)
        for turn in range(40):
            data = MARK + source.randbytes(source.randrange(1, 900_000))
            name = f"k{number}-{turn}"
            try:
                value = upload(node, data, name)
                saved = save(node, name, {"value": value})
                with lock:
                    answered.append((name, data, value, "fields" in saved))
            except Exception:
                return

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    node.kill()
    for thread in threads:
        thread.join()
    node = start()
    step(f"{len(answered)} files were answered before the kill", len(answered) >= 4, len(answered))
    lost = 0
    for name, data, value, is_saved in answered:
        if not is_saved:
            save(node, name, {"value": value})
        stored = lookup(node, name)
        if stored is None or download(stored)[2] != data:
            lost += 1
    step("none of them is lost", lost == 0, lost)
    for name, *_ in answered:
        delete(node, name)
    return node


def start():
    return Node(ASSETS_GRACE_TIME="1s", ASSETS_LINK_LIFE="60s", ASSETS_COMPACTION_RATE="0")


def refused(**settings):
    """What a node says that does not start; nothing if it starts."""
    environment = dict(os.environ, **{f"STRATUS_{key}": value for key, value in settings.items()})
    process = subprocess.Popen([BINARY, "dev", "--data", DATA, "--listen", "127.0.0.1:0", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    line = process.stdout.readline()
    if line:
        process.kill()
    error = process.stderr.read().decode()
    process.wait()
    return "" if line else error


def control(node, *arguments, command="encryption-key"):
    done = subprocess.run(
        [*node.control_words(), "--json", command, *arguments], capture_output=True, text=True)
    # Long answers are lines, and the last one sums them up.
    return done.returncode, json.loads(done.stdout.splitlines()[-1]) if done.stdout else done.stderr


def masters():
    """Named master keys: given, sealing, rotated, exchanged, missing, retired."""
    def file(name):
        path = os.path.join(WORK, name)
        with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as key:
            key.write(os.urandom(32).hex() + "\n")
        return path

    first, other = file("master-1"), file("master-other")
    given = {"KEYS_MASTER_FILES": f"1={first}", "KEYS_SEALING_MASTER": "1"}
    node = Node(**given)
    step("a node with a named master key reads what was sealed before", read_fields(node))
    code, before = control(node, "list")
    step("containers' keys are wrapped under master 0", code == 0 and [
        (m["version"], m["state"], m["containers"]) for m in before["masters"]] == [(0, "opens", 1), (1, "seals", 0)],
        before)
    code, done = control(node, "rotate")
    step("a rotation wraps them under master 1", code == 0 and done == {"version": 1, "wrapped": 1, "failing": []}, done)
    code, after = control(node, "check")
    step("and all of them open", code == 0 and after["failing"] == [] and after["masters"][1]["containers"] == 1, after)
    step("a second rotation has nothing to do", control(node, "rotate")[1]["wrapped"] == 0)
    step("encrypted fields are read after a rotation", read_fields(node))
    step("a stop after a rotation", node.stop() == 0)
    error = refused()
    step("a node without a master key that it had does not start",
         "master key 1, which is not in 'keys.masterFiles'" in error, error)
    step("a node with another key of that version does not start",
         "master key 1 is not the one" in refused(KEYS_MASTER_FILES=f"1={other}"))
    os.chmod(other, 0o604)
    step("a key that others can read is refused", "chmod 600" in refused(KEYS_MASTER_FILES=f"2={other}"))
    step("a sealing key that is not given is refused",
         "no such version" in refused(KEYS_MASTER_FILES=f"1={first}", KEYS_SEALING_MASTER="2"))
    node = Node(KEYS_RETIRED_MASTERS="1")
    code, answer = control(node, "check")
    step("a key that was retired too early is reported by check",
         code == 1 and "lacks master key 1" in answer["failing"][0]["reason"], answer)
    node.stop()
    os.chmod(other, 0o600)
    node = Node(KEYS_MASTER_FILES=f"1={other}", KEYS_SEALING_MASTER="1")
    code, answer = control(node, "check")
    step("a key that is not the one that was noted under its number is reported by check",
         code == 1 and answer["masters"][1]["differs"] is True, answer)
    code, answer = control(node, "rotate")
    step("and wraps nothing", code == 1 and "different files" in answer["error"]["reason"], answer)
    node.stop()
    node = Node(**given)
    step("with its master key a node reads everything again", read_fields(node) and control(node, "check")[0] == 0)
    step("a version that wraps keys is not forgotten", control(node, "forget", "1")[0] == 1)
    node.stop()
    wrong, right = f"{given['KEYS_MASTER_FILES']},2={other}", f"{given['KEYS_MASTER_FILES']},2={file('master-2')}"
    node = Node(KEYS_MASTER_FILES=wrong, KEYS_SEALING_MASTER="1")
    end = time.monotonic() + 20
    while time.monotonic() < end and not any(
            m["version"] == 2 and "noted" in m for m in control(node, "list")[1]["masters"]):
        time.sleep(0.2)
    code, answer = control(node, "forget", "2")
    step("a wrong key that wraps nothing is forgotten", code == 0 and answer == {"forgotten": True}, answer)
    node.stop()
    error = refused(KEYS_MASTER_FILES=right)
    step("but the node has noted it", "master key 2 is not the one" in error, error)
    node = Node(KEYS_RETIRED_MASTERS="2", **given)
    node.stop()
    node = Node(KEYS_MASTER_FILES=right, KEYS_SEALING_MASTER="2")
    code, done = control(node, "rotate")
    step("and after a start without it the right key comes under its number", code == 0 and done["wrapped"] == 1, done)
    step("encrypted fields are read under it", read_fields(node) and control(node, "check")[0] == 0)
    save(node, "kept", {"value": upload(node, MARK, "kept")})
    code, done = control(node, "rotate-databases", "--container", node.facts["container"])
    step("databases get newer keys", code == 0 and done["records"] > 0 and done["failures"] == 0, done)
    step("files are sealed anew, and the older keys are gone",
         done["files"] > 0 and done["fileBytes"] >= len(MARK) and done["keptFiles"] == 0 and done["olderKeys"] == 0, done)
    step("encrypted fields are read after that", read_fields(node))
    step("and so is a file", download(lookup(node, "kept"))[2] == MARK)
    step("no file is lost", control(node, "lost", command="assets") == (0, {"done": True}))
    node.stop()


def documents(node, operation, body):
    path = node.path(operation, node.token).replace("/database/1/", "/documents/1/").replace("/private/", "/")
    with urllib.request.urlopen(urllib.request.Request(node.url + path, json.dumps(body).encode()), timeout=60) as answer:
        return json.load(answer)


def exports(node):
    """An export with files: whole, repeated, mended, and refused where it cannot write."""
    person = ["--email", "mara@example.org"]
    place = [*person, "--container", node.container]
    directory, blocked = os.path.join(WORK, "exports", "mara"), os.path.join(WORK, "blocked")

    def run(*arguments):
        return subprocess.run([*node.control_words(), *arguments], capture_output=True, text=True)

    def export(path=directory):
        done = run("user", "export", *place, "--assets", path)
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    def read(name):
        with open(os.path.join(directory, name), "rb") as file:
            return file.read()

    def summary(done, written, present):
        said = f"container {node.container}, environment development\nfiles: {written} written, {present} already there, 0 failed\n"
        return done.returncode == 0 and done.stderr == said

    run("user", "add", *person)
    own, node.token = node.token, run("user", "sign-in", *place).stdout.strip()
    small, large = MARK * 3, random.Random(7).randbytes(700_000)
    sent = {"equal-1": small, "equal-2": small, "long": large, "empty": b""}
    try:
        for record, data in sent.items():
            save(node, record, {"value": upload(node, data, record)})
        save(node, "public", {"value": json.loads(curl("--data-binary", "@-", tickets(
            node, {"recordType": "Book", "recordName": "public", "fieldName": "cover"}, database="public")[0]["url"],
            body=large[:1000])[2])["singleFile"]}, database="public")
        url = documents(node, "content/upload", {})["url"]
        asset = json.loads(curl("--data-binary", "@-", url, body=large[::-1])[2])["singleFile"]
        documents(node, "items/modify", {"device": "mac", "now": int(time.time() * 1000), "operations": [
            {"operation": "create", "name": "long.bin", "path": "Documents", "asset": asset}]})
    finally:
        node.token = own
    sent["public"] = large[:1000]
    done, lines = export()
    named = {line["record"]["recordName"]: line["files"] for line in lines if "files" in line and "record" in line}
    step("an export with files writes each once, and its lines name them",
         summary(done, 5, 0) and sorted(named) == sorted(sent) and "fetch" not in done.stdout
         and all(read(named[record][0]["file"]) == data for record, data in sent.items())
         and named["equal-1"] == named["equal-2"] and named["long"][0]["field"] == "cover", (done.stderr, named))
    content = [line["documentContent"] for line in lines if "documentContent" in line]
    step("and so are the contents of documents", len(content) == 1 and read(content[0]["file"]) == large[::-1], content)
    paths = [os.path.join(directory, name) for name in os.listdir(directory)]
    step("its owner alone may read them", len(paths) == 5 and os.stat(directory).st_mode & 0o777 == 0o700
         and {os.stat(path).st_mode & 0o777 for path in paths} == {0o600}, os.listdir(directory))
    before = {path: os.stat(path).st_ino for path in paths}
    done, _ = export()
    step("a repeated export fetches nothing",
         summary(done, 0, 5) and before == {path: os.stat(path).st_ino for path in paths}, done.stderr)
    name = named["long"][0]["file"]
    with open(os.path.join(directory, name), "r+b") as file:
        file.seek(400_000)
        file.write(b"rotten")
    os.truncate(os.path.join(directory, named["equal-1"][0]["file"]), 5)
    done, _ = export()
    step("files that are not as they should be are fetched again",
         summary(done, 2, 3) and read(name) == large and read(named["equal-1"][0]["file"]) == small, done.stderr)
    with open(blocked, "w"):
        pass
    done, _ = export(blocked)
    step("a file in the place of the directory is refused", done.returncode == 64 and done.stdout == ""
         and f"cannot use '{blocked}': Not a directory" in done.stderr, (done.returncode, done.stderr))
    step("the audit trail tells of files", " with files " in run("audit").stdout)


def main():
    node = start()
    basics(node)
    exports(node)
    fields(node)
    large(node)
    node = killed(node)
    value = lookup(node, "large")
    node.kill()
    node = start()
    status, _, body = download(lookup(node, "large"), "f", "--range", "0-99")
    step("after another kill the file is there", status == 206 and body == (MARK * 3)[:100], status)
    step("the data directory shows no planted text", planted() == [], planted())
    step("encrypted fields are read after kills", read_fields(node))
    step("the data directory shows the plain field, and no encrypted one",
         holders(PLAIN) != [] and holders(SECRET) == [], (holders(PLAIN), holders(SECRET)))
    size = packs()
    replaced = upload(node, b"small", "large")
    save(node, "large", {"value": replaced})
    step("a replaced file", download(lookup(node, "large"))[2] == b"small")
    delete(node, "large")
    end = time.monotonic() + 60
    while packs() > 8 << 20 and time.monotonic() < end:
        time.sleep(1)
    step(f"the room of deleted files comes back: {size >> 20} MiB, then {packs() >> 20}",
         size > 32 << 20 and packs() <= 8 << 20)
    code, answer = control(node, "verify", "--container", node.container, command="assets")
    step("a container's files are read back", code == 0 and answer.get("done") and answer["read"] > 0, answer)
    step("a stop", node.stop() == 0)
    masters()
    with open(os.path.join(DATA, "token.key"), "wb") as file:
        file.write(os.urandom(32))
    error = refused(KEYS_RETIRED_MASTERS="1,2")
    step("a node with another master key 0 does not start", "master key 0" in error, error[-200:])
    sys.exit(1 if failures else 0)


main()
