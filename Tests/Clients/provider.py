"""Real nodes send pushes to stand-ins of APNs and of a Web Push service; every hit is accounted for in their books.

    provider.py DIRECTORY [--saves N] [--only one|three|firefox]... [--show-trace]

One node: registration, keys by stratusctl, what each push carries, each answer of APNs that matters, kill -9 while the
provider is down. Then three nodes: kill -9 of the node that sends, while others save. Then a page in Firefox.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Support"))
import firefox
import standins
import stratus
from stratus import free_port, step

ZONE = {"zoneName": "shelf"}
CONTAINER = stratus.CONTAINER
TEAM, KEY, TOPIC = "DEF123GHIJ", "ABC123DEFG", "org.example.shelves"


def device(number):
    return bytes([number]) * 32


class Session:
    """A signed-in client of one node."""

    token = "stratus-user-push"

    def __init__(self, url, api_token):
        self.url, self.api_token = url.rstrip("/"), api_token

    def ask(self, operation, body, patience=20, service="database/1", place="private/"):
        query = urllib.parse.urlencode({"ckAPIToken": self.api_token, "ckWebAuthToken": self.token})
        request = urllib.request.Request(
            f"{self.url}/{service}/{CONTAINER}/development/{place}{operation}?{query}", json.dumps(body).encode())
        until = time.monotonic() + patience
        while True:
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code < 500 or time.monotonic() > until:
                    raise AssertionError(f"{operation}: {error.code} {error.read().decode()}") from error
            except OSError:
                if time.monotonic() > until:
                    raise
            # A cluster that elects a leader says to try again.
            time.sleep(0.1)

    def register(self, body):
        return self.ask("tokens/register", body, service="device/1", place="")

    def save(self, name):
        answer = self.ask("records/modify", {"zoneID": ZONE, "operations": [
            {"operationType": "forceUpdate", "record": {"recordType": "Book", "recordName": name,
                                                        "fields": {"title": {"value": f"title of {name}"}}}}]})
        assert "serverErrorCode" not in answer["records"][0], answer

    def prepare(self):
        self.ask("zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": ZONE}}]})
        self.save("first")
        saved = self.ask("subscriptions/modify", {"operations": [{"operationType": "create", "subscription": {
            "subscriptionID": "books", "subscriptionType": "query", "query": {"recordType": "Book"},
            "firesOn": ["create", "update", "delete"],
            "notificationInfo": {"alertBody": "A book", "additionalFields": ["title"], "soundName": "default"}}}]})
        assert "serverErrorCode" not in saved["subscriptions"][0], saved


class Control:
    """stratusctl at one node."""

    def __init__(self, words):
        self.words = words

    def run(self, *words, container=True, fails=False):
        place = ["--container", CONTAINER] if container else []
        done = subprocess.run([*self.words, "push", *words, *place], capture_output=True, text=True)
        assert fails == (done.returncode != 0), (words, done.returncode, done.stdout, done.stderr)
        return done.stdout + (done.stderr if fails else "")

    def lanes(self):
        return json.loads(self.run("status", "--json", container=False))["lanes"]


class Node(stratus.Node, Session):
    """`stratus dev`, on a port and a directory that stay."""

    def __init__(self, directory, port, environment):
        super().__init__(directory, "--admin", "127.0.0.1:0", listen=f"127.0.0.1:{port}", log=open(directory + ".log", "a"),
                         settings=environment)
        self.control = Control(self.control_words())


def about(hit):
    """The record that a hit tells of."""
    return hit["body"].get("ck", {}).get("qry", {}).get("rid")


def told(apns, name, *devices, patience=10):
    """Whether each device has accepted a push of the record."""
    wanted = {one.hex() for one in devices}

    def find(hits):
        found = {hit["device"] for hit in hits if about(hit) == name and hit["answer"] == 200}
        return found >= wanted and found

    return apns.book.wait_for(find, patience)


def repeats_are_equal(hits):
    """All that was sent to one device about one change of one record had one identity."""
    seen = {}
    for hit in hits:
        ck = hit["body"].get("ck", {})
        if "qry" not in ck:
            continue
        place = (hit["device"], ck["nid"], ck["qry"]["sid"])
        identity = (hit["headers"]["apns-id"], hit["headers"]["apns-collapse-id"], about(hit))
        if seen.setdefault(place, identity) != identity:
            return False
    return len({identity[0] for identity in seen.values()}) == len(seen)


def percentile(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


def measure(node, apns, target, count):
    """From the answer to a save, and from the save's beginning, until the push has reached the stand-in."""
    after, whole = [], []
    for number in range(count):
        name = f"measured-{number}"
        begun = time.monotonic()
        node.save(name)
        saved = time.monotonic()
        hit = apns.book.wait(lambda hit: about(hit) == name and hit["device"] == target.hex())[0]
        after.append(max(0.0, (hit["at"] - saved) * 1000))
        whole.append((hit["at"] - begun) * 1000)
        time.sleep(0.01)
    return {"count": count, "after_p50": percentile(after, 0.5), "after_p99": percentile(after, 0.99),
            "whole_p50": percentile(whole, 0.5), "whole_p99": percentile(whole, 0.99)}


def said(figures):
    return (f"{figures['count']} saves, from the answer p50 {figures['after_p50']:.1f} ms p99 {figures['after_p99']:.1f} ms, "
            f"from the request p50 {figures['whole_p50']:.1f} ms p99 {figures['whole_p99']:.1f} ms")


class Providers:
    def __init__(self, work):
        self.authority = standins.Authority(work)
        self.signing = ec.generate_private_key(ec.SECP256R1())
        self.key_file = os.path.join(work, "key.p8")
        with open(self.key_file, "wb") as file:
            file.write(standins.pem_of(self.signing))
        self.apns = standins.APNs(self.authority, self.signing.public_key())
        self.slow = standins.APNs(self.authority, self.signing.public_key())
        self.web = standins.WebPush(self.authority)
        self.environment = dict(
            os.environ, STRATUS_PUSH_APNS_PRODUCTION_URL=self.slow.url, STRATUS_PUSH_APNS_DEVELOPMENT_URL=self.apns.url,
            STRATUS_PUSH_AUTHORITY_FILE=self.authority.file, STRATUS_PUSH_ALLOW_PRIVATE_ADDRESSES="true")

    def add_key(self, control):
        control.run("apns", "add", "--team", TEAM, "--key-id", KEY, "--key-file", self.key_file, "--topics", TOPIC)

    def reset(self):
        self.apns.down = None
        self.apns.scripts.clear()


def one_node(work, options):
    providers = Providers(work)
    apns, web, slow = providers.apns, providers.web, providers.slow
    directory, port = os.path.join(work, "data"), free_port()
    node = Node(directory, port, providers.environment)
    try:
        # Keys and registration.
        try:
            node.register({"apnsEnvironment": "development", "apnsToken": device(1).hex()})
            step("without a key no device is taken", False)
        except AssertionError as error:
            step("without a key no device is taken", "400" in str(error))
        other = os.path.join(work, "other.p8")
        with open(other, "wb") as file:
            file.write(standins.pem_of(ec.generate_private_key(ec.SECP256R1())))
        node.control.run("apns", "add", "--team", TEAM, "--key-id", KEY, "--key-file", other, "--topics", TOPIC)
        step("a wrong key is explained", "InvalidProviderToken" in node.control.run("apns", "check", fails=True))
        providers.add_key(node.control)
        step("the right key in its place is good at once", "yes" in node.control.run("apns", "check"))
        listed = node.control.run("apns", "list") + node.control.run("apns", "list", "--json")
        step("no secret is shown", TOPIC in listed and "PRIVATE" not in listed)
        # The first request makes the container.
        node.prepare()
        public = node.control.run("vapid", "create", "--contact", "mailto:push@example.org").strip()
        one, two, three = device(1), device(2), device(3)
        apns.devices.update(one.hex() for one in (one, two, three))
        answer = node.register({"apnsEnvironment": "development", "apnsToken": one.hex()})
        step("a device registers by hexadecimal digits", answer["apnsToken"] == one.hex() and answer["vapidPublicKey"] == public)
        node.register({"apnsEnvironment": "development", "apnsToken": standins.base64.b64encode(two).decode(), "topic": TOPIC})
        # Nobody says its host: the container's is tried, and then the other.
        node.register({"apnsToken": three.hex()})
        node.register({**web.subscribe("w"), "expirationTime": None, "applicationServerKey": public})
        # One at APNs' other host, which does not answer its first push.
        four = device(4)
        slow.devices.add(four.hex())
        slow.scripts[four.hex()] = ["hang"]
        node.register({"apnsEnvironment": "production", "apnsToken": four.hex()})

        # What a push carries.
        begun = time.time()
        node.save("a")
        step("every device is told", told(apns, "a", one, two, three))
        hit = apns.book.wait(lambda hit: about(hit) == "a")[0]
        rows = []
        for _ in range(50):
            rows = json.loads(node.control.run("trace", "--record", "a", "--json"))["pushes"]
            if len([row for row in rows if row.get("verdict") == "accepted"]) >= 4:
                break
            time.sleep(0.1)
        taken = [row for row in rows if row.get("verdict") == "accepted"]
        step("a trace leads from the save to each device's verdict", len({row["device"] for row in taken}) == 4
             and all(row["saved"] <= row["matched"] <= row["sent"] <= row["judged"] for row in taken)
             and one.hex() not in json.dumps(rows), f"{len(rows)} rows")
        step("and of another record there is none", "books" not in node.control.run("trace", "--record", "nobody"))
        if options.show_trace:
            print(node.control.run("trace", "--record", "a"))
        headers, body = hit["headers"], hit["body"]
        claims, head = jwt.decode(hit["token"], options={"verify_signature": False}), jwt.get_unverified_header(hit["token"])
        step("with APNs' fields", headers["apns-topic"] == TOPIC and headers["apns-push-type"] == "alert"
             and headers["apns-priority"] == "10" and str(uuid.UUID(headers["apns-id"])) == headers["apns-id"]
             and begun + 86_000 < int(headers["apns-expiration"]) < begun + 87_000 and len(headers["apns-collapse-id"]) <= 64
             and claims["iss"] == TEAM and head["kid"] == KEY and abs(claims["iat"] - begun) < 60)
        step("and CloudKit's payload", body["aps"]["alert"] == {"body": "A book"} and body["aps"]["sound"] == "default"
             and body["ck"]["qry"]["af"] == {"title": "title of a"} and body["ck"]["cid"] == CONTAINER)
        page = web.book.wait(lambda hit: about(hit) == "a")
        step("a browser's message is decrypted", page and page[0]["body"]["ck"]["nid"] == body["ck"]["nid"]
             and page[0]["k"] == public and page[0]["claims"]["sub"] == "mailto:push@example.org"
             and page[0]["headers"]["Urgency"] == "high" and int(page[0]["headers"]["TTL"]) == 86_400)
        step("all devices share a connection", apns.connections <= 3, f"{apns.connections} with those of 'check'")

        user = taken[0]["user"]
        listed = json.loads(node.control.run("devices", "--user", user, "--json"))["devices"]
        step("a user's devices are listed", sorted(row["kind"] for row in listed) == ["apns"] * 4 + ["web push"]
             and not any("trouble" in row for row in listed) and one.hex() not in json.dumps(listed), listed)
        why = json.loads(node.control.run("explain", "--user", user, "--record", "a", "--zone", "shelf", "--json"))
        step("a change of a record is explained", why["reaches"] and why["subscriptions"][0]["fires"], why["subscriptions"])
        why = node.control.run("explain", "--user", user, "--record", "nobody", "--zone", "shelf", fails=True)
        step("and why there is none", "there is no such record" in why and "it reaches no device" in why)
        browser = [row["device"] for row in listed if row["kind"] == "web push"][0]
        node.control.run("send", "--user", user, "--alert", "by hand", fails=True)
        said_of = node.control.run("send", "--user", user, "--alert", "by hand", "--device", browser)
        page = web.book.wait(lambda hit: hit["body"]["aps"].get("alert") == {"body": "by hand"})
        step("a push by hand reaches the one browser", page and "accepted" in said_of)
        phone = [row["device"] for row in taken if row["lane"].startswith("apns")][0]
        node.control.run("send", "--user", user, "--alert", "by hand", "--device", phone)
        step("and the one device", len(apns.book.wait(lambda hit: hit["body"]["aps"].get("alert") == {"body": "by hand"})) == 1)
        if options.show_trace:
            for words in (["devices", "--user", user], ["explain", "--user", user, "--record", "a", "--zone", "shelf"]):
                print(node.control.run(*words))

        figures = measure(node, apns, one, options.saves)
        step("a save reaches the stand-in", figures["after_p99"] < 1000, said(figures))

        # Each answer that matters. One device's trouble is no other's.
        apns.scripts[one.hex()] = [(503, "ServiceUnavailable")]
        apns.scripts[two.hex()] = [(500, "InternalServerError")]
        node.save("b")
        step("503 and 500 are repeated", told(apns, "b", one, two, three))
        apns.scripts[two.hex()] = [(429, "TooManyRequests")]
        begun = time.monotonic()
        node.save("c")
        step("429 for one device holds up no other", told(apns, "c", one, three)
             and not [h for h in apns.book.hits if about(h) == "c" and h["device"] == two.hex() and h["answer"] == 200],
             f"{(time.monotonic() - begun) * 1000:.0f} ms")
        apns.scripts[one.hex()] = ["goaway"]
        node.save("d")
        step("after GOAWAY the push goes over another connection", told(apns, "d", one, three))
        apns.scripts[one.hex()] = ["cut"]
        node.save("e")
        step("a connection that is cut is replaced", told(apns, "e", one, three))
        apns.scripts[three.hex()] = [(410, "Unregistered", 1_000)]
        node.save("f")
        step("410 from before the registration removes nothing", told(apns, "f", one, three))
        apns.scripts[three.hex()] = [(410, "Unregistered", int(time.time() * 1000) + 60_000)]
        node.save("g")
        step("the others are told", told(apns, "g", one))
        apns.book.wait(lambda hit: hit["device"] == three.hex() and hit["answer"] == 410 and about(hit) == "g")
        time.sleep(0.5)
        node.save("h")
        time.sleep(1)
        step("410 from after it removes the device", told(apns, "h", one)
             and not [hit for hit in apns.book.hits if hit["device"] == three.hex() and about(hit) == "h"])
        web.status["/push/w"] = 410
        node.save("i")
        web.book.wait(lambda hit: hit["answer"] == 410)
        time.sleep(0.5)
        node.save("j")
        step("a browser that has left is removed", told(apns, "j", one)
             and not [hit for hit in web.book.hits if about(hit) == "j"])

        # A key that APNs does not believe any more, and its successor.
        node.control.run("apns", "add", "--team", TEAM, "--key-id", KEY, "--key-file", other, "--topics", TOPIC)
        time.sleep(1.2)
        node.save("wrong")
        until = time.monotonic() + 10
        while time.monotonic() < until and not any(lane["state"] == "refused" for lane in node.control.lanes()):
            time.sleep(0.1)
        step("a key that APNs refuses stops its lane",
             any(lane["state"] == "refused" and lane["trouble"] == "InvalidProviderToken" for lane in node.control.lanes()))
        providers.add_key(node.control)
        begun = time.monotonic()
        step("an exchanged key opens it without a restart", told(apns, "wrong", one), f"after {time.monotonic() - begun:.1f} s")
        exchanged = len(apns.book.hits)

        # A push service that says nothing holds up itself only.
        silent = socket.create_server(("127.0.0.1", 0))
        node.register({**web.subscribe("silent"), "endpoint": f"https://localhost:{silent.getsockname()[1]}/push/silent"})
        times = []
        for number in range(20):
            name = f"beside-{number}"
            begun = time.monotonic()
            node.save(name)
            told(apns, name, one)
            times.append((time.monotonic() - begun) * 1000)
        step("a silent push service delays nobody else", max(times) < 1000,
             f"save to APNs p50 {percentile(times, 0.5):.1f} ms, most {max(times):.1f} ms")

        hung = slow.book.wait(lambda hit: hit["answer"] == "hang")[0]
        again = slow.book.wait(lambda hit: hit["answer"] == 200 and about(hit) == "a", 20)
        step("a push that is never answered is repeated over another connection", again and slow.connections == 2
             and repeats_are_equal(slow.book.hits), f"after {again[0]['at'] - hung['at']:.1f} s, the others were told meanwhile")

        # A pause.
        node.control.run("pause")
        time.sleep(1.2)
        node.save("paused")
        time.sleep(1)
        step("a pause sends nothing", not [hit for hit in apns.book.hits if about(hit) == "paused"])
        node.control.run("resume")

        # kill -9 while the provider is down.
        apns.down = (503, "ServiceUnavailable")
        names = [f"late-{number}" for number in range(10)]
        for name in names:
            node.save(name)
        apns.book.wait(lambda hit: hit["answer"] == 503 and about(hit) in ["paused", *names], 15)
        node.kill()
        providers.reset()
        silent.close()
        node = Node(directory, port, providers.environment)
        for name in ["paused", *names]:
            if not told(apns, name, one, patience=15):
                step("after kill -9 everything is told", False, f"{name}; lanes {node.control.lanes()}")
        order = [about(hit) for hit in apns.book.hits if hit["device"] == one.hex() and hit["answer"] == 200 and about(hit) in names]
        step("after kill -9 everything is told, in order", list(dict.fromkeys(order)) == names, f"{len(order)} hits of {len(names)}")
        step("every repeat had the identity of the first", repeats_are_equal(apns.book.hits))
        tokens = {hit["token"] for hit in apns.book.hits[exchanged:]}
        step("one provider token served both processes", len(tokens) == 1, f"{len(apns.book.hits) - exchanged} pushes")
        return figures
    finally:
        if node.is_alive:
            node.kill()


def in_firefox(work, options):
    """A page subscribes by the browser's own Push API, is told of a change, and leaves."""
    if not shutil.which("firefox-esr"):
        print("SKIP firefox: no firefox-esr here (apt-get install firefox-esr)", flush=True)
        return
    authority = standins.Authority(work)
    service = firefox.PushService(authority)
    node = Node(os.path.join(work, "data"), free_port(), dict(
        os.environ, STRATUS_PUSH_AUTHORITY_FILE=authority.file, STRATUS_PUSH_ALLOW_PRIVATE_ADDRESSES="true"))
    page = None
    try:
        public = node.control.run("vapid", "create", "--contact", "mailto:push@example.org").strip()
        node.prepare()
        register = node.path("tokens/register", user=Session.token).replace("/database/", "/device/").replace("private/", "")
        page = firefox.Page(work, service, public, node.url + register)
        step("a page in Firefox subscribes and registers at the node", page.wait("registered", 60), page.error)
        node.save("for-firefox")
        heard = page.wait("push", 20)
        body = json.loads(heard) if heard else {}
        step("its service worker is told of a change, decrypted by the browser", body.get("ck", {}).get("qry", {}).get(
            "rid") == "for-firefox" and body["aps"]["alert"] == {"body": "A book"}, page.error)
        page.leave()
        step("the page unsubscribes", page.wait("left", 20) == "true" and service.wait("unregistered", 20), page.error)
        node.save("after")
        user = node.ask("users/current", {}, place="public/")["userRecordName"]
        step("its push service then answers 410", service.wait("gone", 20))

        def registered():
            rows = json.loads(node.control.run("devices", "--user", user, "--json"))["devices"]
            return [row for row in rows if "was removed" not in row.get("trouble", "")]

        step("and the device is removed", stratus.wait(lambda: not registered(), 10), registered())
    finally:
        if page:
            page.stop()
        node.kill()


class Cluster(stratus.Cluster):
    def fail(self, text):
        step("Deploy/cluster", False, text)


def three_nodes(work, options):
    providers = Providers(work)
    apns = providers.apns
    cluster = Cluster(os.path.join(work, "cluster"), settings=providers.environment)
    try:
        cluster.up("--partitions", "16")
        nodes = [Session(url, cluster.facts["apiToken"]) for url in cluster.facts["urls"]]
        controls = [Control(cluster.control_words(node)) for node in range(3)]
        providers.add_key(controls[0])
        nodes[0].prepare()
        one, two = device(1), device(2)
        apns.devices.update((one.hex(), two.hex()))
        nodes[1].register({"apnsEnvironment": "development", "apnsToken": one.hex()})
        nodes[2].register({"apnsEnvironment": "development", "apnsToken": two.hex()})
        for number, node in enumerate(nodes):
            node.save(f"from-{number}")
            step(f"a save at node {number + 1} of 3 is told", told(apns, f"from-{number}", one, two))
        figures = measure(nodes[0], apns, one, options.saves)
        step("a save on three nodes reaches the stand-in", figures["after_p99"] < 2000, said(figures))
        senders = [number for number, control in enumerate(controls) if any(lane["answers"] for lane in control.lanes())]
        step("one node sends", len(senders) == 1, f"node {senders[0] + 1}" if senders else "none")
        leader = senders[0]
        others = [node for number, node in enumerate(nodes) if number != leader]
        names = [f"round-{number}" for number in range(30)]
        for number, name in enumerate(names):
            if number == 10:
                cluster("kill", str(leader + 1))
            others[number % 2].save(name)
        missed = [name for name in names if not told(apns, name, one, two, patience=15)]
        step("the node that sent is killed, and nothing is missed", not missed, missed or f"{len(names)} saves, 2 devices")
        hits = [hit for hit in apns.book.hits if about(hit) in names]
        step("every repeat had the identity of the first", repeats_are_equal(apns.book.hits),
             f"{len(hits)} hits of {2 * len(names)}")
        step("nodes share one provider token", len({hit["token"] for hit in apns.book.hits}) == 1)
        return figures
    finally:
        cluster.run("down")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--saves", type=int, default=60)
    parser.add_argument("--only", action="append", choices=("one", "three", "firefox"), default=[])
    parser.add_argument("--show-trace", action="store_true")
    options = parser.parse_args()
    for name, part in (("one", one_node), ("three", three_nodes), ("firefox", in_firefox)):
        if options.only and name not in options.only:
            continue
        directory = os.path.join(options.work, name)
        os.mkdir(directory)
        part(directory, options)


main()
