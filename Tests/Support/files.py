"""Clients that upload, save, read and delete files, and clusters that keep them."""
import base64, hashlib, http.client, json, os, re, subprocess, time

import stratus

SALT = b"com.apple.XattrObjectSalt\0com.apple.DataObjectSalt\0"
DAY = 24 * 3_600_000
# Bytes of copies that rows name or may yet name.
LIVE = 'stratus_asset_pack_bytes{state="live"}'


def checksum(data):
    return base64.b64encode(b"\1" + hashlib.sha1(SALT + data).digest()).decode()


class Cluster(stratus.Cluster):
    def control(self, node, *words):
        """Its code and what it says, without the line that names container and environment."""
        done = subprocess.run([*self.control_words(node), *words], capture_output=True, text=True)
        said = [line for line in done.stderr.splitlines(True) if not re.fullmatch(r"container \S+, environment \S+\n", line)]
        return done.returncode, done.stdout + "".join(said)

    def figure(self, node, name):
        """Of the node's metrics; the sum where there are several."""
        _, text = self.page(node, "/metrics", timeout=10)
        found = re.findall(rf"^{re.escape(name)} ([0-9.e+]+)$", text, re.MULTILINE)
        return sum(float(value) for value in found) if found else None

    def packs(self, node):
        folders = os.walk(f"{self.home(node)}/data/assets")
        return [os.path.join(folder, name) for folder, _, names in folders for name in names if name.endswith(".pack")]


class Refused(Exception):
    """An answer that says: not now."""


class Client:
    """One user, who talks to one node at a time."""

    def __init__(self, cluster, user, node=0):
        self.cluster, self.user, self.node = cluster, user, node

    def request(self, method, host, path, body=None, headers={}):
        connection = http.client.HTTPConnection(host, timeout=40)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def api(self, operation, body):
        path = self.cluster.path(operation, f"stratus-user-{self.user}")
        status, _, answer = self.request("POST", self.cluster.addresses[self.node], path, json.dumps(body))
        if status == 503:
            raise Refused(answer)
        return status, json.loads(answer)

    def ticket(self, record, field="cover", kind="Book"):
        status, answer = self.api("assets/upload", {"tokens": [{"recordType": kind, "recordName": record, "fieldName": field}]})
        if status != 200:
            raise Refused(answer)
        return answer["tokens"][0]["url"]

    def upload(self, data, record, field="cover", kind="Book"):
        host, path = self.ticket(record, field, kind).split("//")[1].split("/", 1)
        status, _, body = self.request("POST", host, "/" + path, data, {"Content-Type": "application/octet-stream"})
        if status != 200:
            raise Refused(f"upload {status} {body}")
        return json.loads(body)["singleFile"]

    def modify(self, operation):
        status, answer = self.api("records/modify", {"operations": [operation]})
        record = answer["records"][0] if status == 200 else answer
        if record.get("serverErrorCode") == "TRY_AGAIN_LATER":
            raise Refused(record)
        return record

    def save(self, record, value, field="cover"):
        return self.modify({"operationType": "forceUpdate", "record": {
            "recordName": record, "recordType": "Book", "fields": {field: {"value": value}}}})

    def delete(self, record):
        return self.modify({"operationType": "forceDelete", "record": {"recordName": record}}).get("deleted")

    def lookup(self, record, field="cover"):
        status, answer = self.api("records/lookup", {"records": [{"recordName": record}]})
        if status != 200:
            raise Refused(answer)
        return answer["records"][0].get("fields", {}).get(field, {}).get("value")

    def download(self, value, node=None, headers={}):
        host, path = value["downloadURL"].split("//")[1].split("/", 1)
        if node is not None:
            host = self.cluster.addresses[node]
        status, _, body = self.request("GET", host, "/" + path.replace("${f}", "f"), headers=headers)
        return status, body


def patiently(body, seconds=20):
    """A cluster that lost a node says for a moment that it is not ready."""
    end = time.monotonic() + seconds
    while True:
        try:
            return body()
        except (Refused, OSError, http.client.HTTPException) as error:
            if time.monotonic() > end:
                raise SystemExit(f"not within {seconds} s: {error}")
            time.sleep(0.1)
