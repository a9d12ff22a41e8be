#!/usr/bin/env python3
"""Whether time tells what an answer does not: values of records that nobody may read, and who has an account.

    swift build -c release --product stratus
    swift build -c release --product stratusctl
    Tests/Benchmarks/guessing/run.py [--requests 100000] [--seconds 240] [--seed N] [--json FILE]

Both experiments of the security audit of November 2026, against one node on the loopback:

    digits      a record of Alice's has a value of four digits. Bob may not read it. For each place he asks twenty queries a
                request for each of the ten digits, in drawn order, and takes the digit whose requests differ most from the
                others. To his advantage he then learns the right digit, and goes on with it. (Finding 3)
    control     the same by Alice, who may read her record: shows that the method finds digits where time tells them
    accounts    an address whose owner does not want to be found, and one that nobody has, in drawn order. As in the audit,
                the least of ten requests of each are compared in several hundred draws. (Finding 5) The limit of 100 look-ups
                a minute for each user is lifted: with it there would be five draws a minute

Not told apart from chance is: fewer digits right than chance gives in one run of 2,000, and Yuen's |t| < 4.5 between the
requests of the two kinds, without their slower halves; of the draws, as many on either side as 4.5 standard deviations allow.
--requests is divided: eight tenths for the digits, the rest for accounts. --seconds ends the program early, and it says so.

STRATUS_BINARY names another program than .build/release/stratus.
"""
import argparse, json, math, os, random, shutil, socket, subprocess, sys, tempfile, time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Support"))
import stratus

PROGRAM = os.environ.get("STRATUS_BINARY", os.path.join(stratus.RELEASE, "stratus"))
CONTAINER = "iCloud.org.example.guessing"
PLACE = ("--container", CONTAINER, "--environment", "development")
SCHEMA = """DEFINE SCHEMA
    RECORD TYPE Secret ( s STRING QUERYABLE SORTABLE, GRANT CREATE TO "_icloud", GRANT READ, WRITE TO "_creator" );
"""
T_MAX = 4.5


class Node(stratus.Node):
    def __init__(self, place):
        super().__init__(os.path.join(place, "data"), program=PROGRAM, log=open(os.path.join(place, "log"), "w"),
                         settings={"STRATUS_LIMITS_USER_LOOKUP_RATE_MAX": "0"})
        self.container = CONTAINER

    def control(self, *words):
        done = subprocess.run([*self.control_words(), *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"stratusctl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout.strip()


class Caller:
    """One connection of one person, as bare as it can be: what is timed is the server."""

    def __init__(self, node, user):
        self.node, self.user = node, user
        self.socket = socket.create_connection((node.host, node.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, operation, body):
        body = json.dumps(body).encode()
        path = self.node.path(operation, self.user, database="public")
        return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    def send(self, request):
        """Returns the seconds it took, the status and the body."""
        begun = time.perf_counter()
        self.socket.sendall(request)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.receive()
        head, _, body = answer.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.receive()
        return time.perf_counter() - begun, int(head.split()[1]), body

    def receive(self):
        part = self.socket.recv(1 << 16)
        if not part:
            raise SystemExit("the node closed the connection")
        return part


def kept(times):
    """Without the slower half, which other work of the machine makes."""
    return sorted(times)[:max(2, len(times) // 2)]


def level(times):
    return sum(kept(times)) / len(kept(times))


def spread(times):
    """The variance of ``level``: Yuen's, by the times as if the slower half were as slow as the slowest that is kept."""
    some = kept(times)
    all_of_them = some + [some[-1]] * (len(times) - len(some))
    mean = sum(all_of_them) / len(all_of_them)
    return sum((one - mean) ** 2 for one in all_of_them) / max(1, len(some) * (len(some) - 1))


def yuen(one, other):
    return (level(one) - level(other)) / math.sqrt(max(1e-30, spread(one) + spread(other)))


def right_by_chance(count, probability=1 / 10, rare=1 / 2_000):
    """The least number of right guesses that chance gives in fewer than one run of 2,000."""
    tail = 0.0
    for right in range(count, -1, -1):
        tail += math.comb(count, right) * probability ** right * (1 - probability) ** (count - right)
        if tail > rare:
            return right + 1
    return 0


def guess(caller, secret, each, draw, until):
    """Returns which places were guessed right, and the times of right and of wrong prefixes. Ends early at `until`."""
    right, good, bad = [], [], []
    for place in range(len(secret)):
        requests = {}
        for digit in "0123456789":
            query = {"query": {"recordType": "Secret", "filterBy": [
                {"fieldName": "s", "comparator": "BEGINS_WITH", "fieldValue": {"value": secret[:place] + digit}}]}}
            requests[digit] = caller.request("internal/records/query/batch", {"batch": [query] * 20})
        times = {digit: [] for digit in requests}
        order = list(requests) * each
        draw.shuffle(order)
        for number, digit in enumerate(order):
            took, status, body = caller.send(requests[digit])
            if status != 200:
                raise SystemExit(f"{status} {body[:300]}")
            times[digit].append(took)
            if number % 64 == 0 and time.monotonic() > until:
                return right, good, bad, True
        means = {digit: level(taken) for digit, taken in times.items()}
        middle = sorted(means.values())[5]
        right.append(max(means, key=lambda digit: abs(means[digit] - middle)) == secret[place])
        good += times[secret[place]]
        for digit in times:
            if digit != secret[place]:
                bad += times[digit]
    return right, good, bad, False


def digits(node, people, requests, draw, until, save):
    secrets = 3
    each = max(5, requests // (secrets * 4 * 10))
    right, t = [], []
    caller = Caller(node, people["bob"])
    for number in range(secrets):
        secret = f"{draw.randrange(10_000):04}"
        save(secret)
        found, good, bad, is_cut = guess(caller, secret, each, draw, time.monotonic() + (until - time.monotonic()) / (secrets - number))
        right += found
        if good:
            t.append(yuen(good, bad))
    bound = right_by_chance(len(right))
    holds = bool(right) and sum(right) < bound and all(abs(one) < T_MAX for one in t)
    print(f"digits: {sum(right)} of {len(right)} right, chance gives fewer than {bound}; {each} requests for each digit of each place; "
          f"t {', '.join(f'{one:.1f}' for one in t)}: {'not told apart' if holds else 'TOLD APART'}", flush=True)
    return holds, {"right": sum(right), "of": len(right), "bound": bound, "each": each, "t": [round(one, 2) for one in t]}


def control(node, people, draw, until, save):
    secret = f"{draw.randrange(10_000):04}"
    save(secret)
    right, good, bad, _ = guess(Caller(node, people["alice"]), secret, 50, draw, until)
    t = yuen(good, bad) if good else 0
    holds = len(right) == 4 and all(right) and abs(t) > T_MAX
    print(f"control: {sum(right)} of {len(right)} right with 50 requests for each, t {t:.1f}: "
          f"{'the method works' if holds else 'THE METHOD FINDS NOTHING'}", flush=True)
    return holds, {"right": sum(right), "t": round(t, 2)}


def accounts(node, people, requests, draw, until):
    """Ten requests of each kind make a draw."""
    draws = max(20, requests // 20)
    caller = Caller(node, people["bob"])
    times = {"hidden": [], "nobody": []}
    higher = done = 0
    sent = {kind: caller.request("users/lookup/email", {"users": [{"emailAddress": f"{kind}@example.org"}] * 200})
            for kind in times}
    for _ in range(draws):
        order = list(times) * 10
        draw.shuffle(order)
        taken = {kind: [] for kind in times}
        for kind in order:
            while True:
                took, status, body = caller.send(sent[kind])
                if status == 200:
                    break
                if status not in (429, 503):
                    raise SystemExit(f"{status} {body[:300]}")
                time.sleep(0.2)
            taken[kind].append(took)
        for kind in times:
            times[kind] += taken[kind]
        higher += min(taken["hidden"]) > min(taken["nobody"])
        done += 1
        if time.monotonic() > until:
            break
    t = yuen(times["hidden"], times["nobody"])
    slack = T_MAX * math.sqrt(done) / 2
    holds = abs(t) < T_MAX and abs(higher - done / 2) <= slack
    print(f"accounts: the one that exists was slower in {higher} of {done} draws, chance gives {done / 2:.0f} ± {slack:.0f}; t {t:.1f}: "
          f"{'not told apart' if holds else 'TOLD APART'}", flush=True)
    return holds, {"higher": higher, "draws": done, "t": round(t, 2)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--only", choices=["digits", "accounts"])
    parser.add_argument("--json")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.requests} requests, {options.seconds:.0f} s at most, {PROGRAM}")
    draw = random.Random(options.seed)
    place = tempfile.mkdtemp(prefix="stratus-guessing-")
    node = Node(place)
    begun = time.monotonic()
    try:
        schema = os.path.join(place, "schema")
        with open(schema, "w") as file:
            file.write(SCHEMA)
        node.control("schema", "import", *PLACE, schema)
        people = {}
        for name in ("alice", "bob", "hidden"):
            node.control("user", "add", "--email", f"{name}@example.org", "--given-name", name, "--family-name", "Example")
            people[name] = node.control("user", "sign-in", "--email", f"{name}@example.org", *PLACE)
        alice = Caller(node, people["alice"])

        def save(secret):
            _, status, body = alice.send(alice.request("records/modify", {"operations": [
                {"operationType": "forceUpdate", "record": {"recordType": "Secret", "recordName": "one",
                                                            "fields": {"s": {"value": secret}}}}]}))
            if status != 200 or b"recordChangeTag" not in body:
                raise SystemExit(f"{status} {body[:300]}")

        # Somebody who has used the container, and does not want to be found.
        hidden = Caller(node, people["hidden"])
        hidden.send(hidden.request("records/query", {"query": {"recordType": "Secret"}}))
        results = {}
        if options.only != "accounts":
            results["control"] = control(node, people, draw, begun + options.seconds, save)
            results["digits"] = digits(node, people, options.requests * 8 // 10, draw, begun + options.seconds * 0.75, save)
        if options.only != "digits":
            results["accounts"] = accounts(node, people, options.requests * 2 // 10, draw, begun + options.seconds)
    finally:
        node.stop()
    took = time.monotonic() - begun
    print(f"{took:.0f} s" + (" (ended by --seconds)" if took >= options.seconds * 0.99 else ""))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({name: figures for name, (_, figures) in results.items()}, file, indent=1)
    shutil.rmtree(place)
    sys.exit(0 if all(holds for holds, _ in results.values()) else 1)


main()
