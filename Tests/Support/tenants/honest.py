#!/usr/bin/env python3
"""A client that asks for little: every 20 ms it looks up one record, saves it and queries, and it polls all the while.

It is a process of its own, so that what attackers compute does not count as time of the nodes. It reads lines with a number of
seconds, works for so long, and answers each with a line of JSON.

usage: honest.py URL API-TOKEN CONTAINER
"""
import http.client, json, os, sys, threading, time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import stratus

USER = "stratus-user-honest"
PAUSE = 0.02


class Asker:
    """Requests of one kind after the other over one connection, with their times in milliseconds."""

    def __init__(self, address, token, container):
        self.address, self.token, self.container = address, token, container
        self.connection = http.client.HTTPConnection(address, timeout=60)
        self.begin()

    def begin(self):
        self.times, self.refused, self.lost = {}, {}, []

    def ask(self, kind, method, target, body=None):
        """Returns the answer; None if there was none, or it was a refusal. Both are noted."""
        begun = time.monotonic()
        try:
            self.connection.request(method, target, body and json.dumps(body))
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.lost.append(f"{kind}: {error!r}")
            return None
        self.times.setdefault(kind, []).append((time.monotonic() - begun) * 1000)
        if answer.status != 200 or b"serverErrorCode" in text:
            key = f"{kind}: {answer.status}"
            self.refused[key] = self.refused.get(key, 0) + 1
            return None
        return json.loads(text) if text else {}

    def path(self, operation):
        return stratus.path(operation, self.token, USER, self.container)


class Honest:
    def __init__(self, address, token, container):
        self.main, self.poller = Asker(address, token, container), Asker(address, token, container)
        self.number, self.saved, self.courier = 0, 0, None

    def prepare(self):
        self.main.ask("zones", "POST", self.main.path("zones/modify"), {"operations": [
            {"operationType": "create", "zone": {"zoneID": {"zoneName": "own"}}}]})
        self.main.ask("subscribe", "POST", self.main.path("subscriptions/modify"), {"operations": [
            {"operationType": "create", "subscription": {
                "subscriptionID": "own", "subscriptionType": "zone", "zoneID": {"zoneName": "own"}}}]})
        self.renew()
        self.work()

    def renew(self):
        made = self.main.ask("token", "POST", self.main.path("tokens/create").replace("/database/", "/device/").replace(
            "private/", ""), {"apnsEnvironment": "development"})
        if made:
            self.courier = "/" + made["webcourierURL"].split("/", 3)[3]

    def work(self):
        """One round. What was saved must be there in the next."""
        zone = {"zoneID": {"zoneName": "own"}}
        found = self.main.ask("look-up", "POST", self.main.path("records/lookup"), {**zone, "records": [{"recordName": "one"}]})
        if found and found["records"][0]["fields"]["t"]["value"] < f"{self.saved:09}":
            self.main.lost.append(f"the save {self.saved} is not there: {found}")
        self.number += 1
        done = self.main.ask("save", "POST", self.main.path("records/modify"), {**zone, "operations": [
            {"operationType": "forceUpdate", "record": {"recordType": "L", "recordName": "one", "fields": {
                "t": {"value": f"{self.number:09}"}}}}]})
        if done:
            self.saved = self.number
        self.main.ask("query", "POST", self.main.path("records/query"), {**zone, "query": {"recordType": "L", "filterBy": [
            {"fieldName": "t", "comparator": "GREATER_THAN", "fieldValue": {"value": "0"}}]}})

    def poll(self, until):
        while time.monotonic() < until:
            if self.courier and self.poller.ask("poll", "GET", self.courier) is None:
                time.sleep(0.2)
            time.sleep(PAUSE)

    def run(self, seconds):
        until = time.monotonic() + seconds
        self.main.begin()
        self.poller.begin()
        polling = threading.Thread(target=self.poll, args=(until,), daemon=True)
        polling.start()
        while time.monotonic() < until:
            self.work()
            time.sleep(PAUSE)
        # One that waits for news has some now.
        self.work()
        polling.join(60)
        if polling.is_alive():
            self.poller.lost.append("a poll is not answered")
        times = {**self.main.times, **self.poller.times}
        return {"times": {kind: figures(sorted(all)) for kind, all in sorted(times.items())},
                "refused": {**self.main.refused, **self.poller.refused}, "lost": self.main.lost + self.poller.lost}


def figures(times):
    """The median, the 99th percentile, the longest and the count."""
    return [round(times[len(times) // 2], 1), round(times[min(len(times) - 1, len(times) * 99 // 100)], 1), round(times[-1], 1), len(times)]


def main():
    url, token, container = sys.argv[1:]
    honest = Honest(url.split("//")[1].rstrip("/"), token, container)
    honest.prepare()
    for line in sys.stdin:
        print(json.dumps(honest.run(float(line))), flush=True)


if __name__ == "__main__":
    main()
