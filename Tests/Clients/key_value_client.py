"""A client of the key-value store: the class that apps know from other systems, over HTTP.

Setting and reading are local and never wait. `push()` and `wait()` talk to the server; `run()` does both in the background, and
sends what was set within `coalesce` seconds as one batch. Everything the client knows is in one file, so that a process may be
killed at any time: a batch is written there before it is sent, and sent again under its number until an answer has come.
"""
import json
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

REMOVED = object()


def tagged(value):
    """The value as the server takes it. JSON cannot tell the types apart, so each value names its own."""
    if isinstance(value, bool):
        return {"boolean": value}
    if isinstance(value, int):
        return {"integer": value}
    if isinstance(value, float):
        return {"real": value}
    if isinstance(value, str):
        return {"string": value}
    if isinstance(value, list):
        return {"array": [tagged(item) for item in value]}
    if isinstance(value, dict):
        return {"dictionary": {key: tagged(item) for key, item in value.items()}}
    raise TypeError(f"{type(value)} is no property list")


def plain(value):
    (kind, content), = value.items()
    if kind == "array":
        return [plain(item) for item in content]
    if kind == "dictionary":
        return {key: plain(item) for key, item in content.items()}
    return content


class KeyValueStore:
    """`changed(reason, keys)` is called when something changed from outside: `serverChange`, `initialSync`, `accountChange`, or
    `quotaViolation` with the keys that the server refused."""

    def __init__(self, urls, container, credentials, device, path, changed=None, clock=time.time, environment="development"):
        self.urls, self.container, self.environment = list(urls), container, environment
        self.credentials, self.device, self.path = credentials, device, path
        self.changed, self.clock = changed or (lambda reason, keys: None), clock
        self.lock, self.talking, self.dirty = threading.Lock(), threading.Lock(), threading.Event()
        # `values` is what the app sees; `pending` has the times of what no batch holds yet.
        self.state = {"values": {}, "pending": {}, "sent": None, "batch": 0, "token": None, "identity": None}
        if os.path.exists(path):
            with open(path) as file:
                self.state = json.load(file)

    # What apps call. None of it waits.

    def get(self, key, default=None):
        with self.lock:
            value = self.state["values"].get(key)
        return default if value is None else plain(value)

    def items(self):
        with self.lock:
            return {key: plain(value) for key, value in self.state["values"].items()}

    def set(self, key, value):
        self._change(key, tagged(value))

    def remove(self, key):
        self._change(key, None)

    def _change(self, key, value):
        with self.lock:
            change = {"key": key, "at": self._now()}
            if value is None:
                self.state["values"].pop(key, None)
                change["removed"] = True
            else:
                self.state["values"][key] = value
                change["value"] = value
            self.state["pending"][key] = change
            self._save()
        self.dirty.set()

    # The server.

    def push(self):
        """Sends what waits, if anything does. Returns whether everything was sent; raises OSError if the server is away."""
        with self.talking:
            with self.lock:
                if self.state["sent"] is None and self.state["pending"]:
                    self.state["batch"] += 1
                    self.state["sent"] = {"batch": self.state["batch"], "changes": list(self.state["pending"].values())}
                    self.state["pending"] = {}
                    self._save()
                sent = self.state["sent"]
            if sent is None and self.state["token"] is not None:
                return True
            self._sync(dict(sent or {}), 0)
        return not self.state["pending"]

    def wait(self, seconds):
        """Waits until something changes elsewhere. Raises OSError if the server is away."""
        return self._sync({}, seconds)

    def run(self, stopped, coalesce=5, patience=50):
        """Keeps the store up to date until `stopped` is set: one thread sends, this one waits for others."""
        def sender():
            while not stopped.is_set():
                if self.dirty.wait(0.2):
                    stopped.wait(coalesce)
                    self.dirty.clear()
                    self._retried(self.push, stopped)

        thread = threading.Thread(target=sender, daemon=True)
        thread.start()
        self._retried(self.push, stopped)
        while not stopped.is_set():
            self._retried(lambda: self.wait(patience), stopped)
        thread.join()

    @staticmethod
    def _retried(action, stopped):
        pause = 0.1
        while not stopped.is_set():
            try:
                return action()
            except OSError:
                stopped.wait(pause)
                pause = min(2, pause * 2)

    def _sync(self, body, wait):
        with self.lock:
            token, identity = self.state["token"], self.state["identity"]
        # The age of a change is the time from `at` to `now`, so `now` is that of this very attempt.
        body.update(device=self.device, token=token, wait=wait, now=self._now())
        if identity is not None:
            body["identityToken"] = identity
        answer = self._ask("kvs/1", "sync", body)
        with self.lock:
            # A wait whose token is not the newest any more has nothing to tell.
            if "changes" not in body and self.state["token"] != token:
                return answer
            told = self._take(answer, set(change["key"] for change in body.get("changes", [])))
            self._save()
        for reason, keys in told:
            self.changed(reason, keys)
        return answer

    def _take(self, answer, sent):
        state, reason, keys = self.state, answer["reason"], []
        if sent or reason == "accountChange":
            state["sent"] = None
        if reason == "accountChange":
            state["pending"] = {}
        if reason in ("initialSync", "accountChange"):
            # Everything there is: what is not in the answer is gone, but for what waits to be sent.
            waiting = set(state["pending"]) | set(c["key"] for c in (state["sent"] or {}).get("changes", []))
            listed = set(change["key"] for change in answer["changes"])
            for key in [key for key in state["values"] if key not in waiting | listed]:
                del state["values"][key]
                keys.append(key)
        ahead = set(state["pending"]) | set(c["key"] for c in (state["sent"] or {}).get("changes", []))
        for change in answer["changes"]:
            if change["key"] in ahead:
                continue
            if state["values"].get(change["key"]) != change.get("value"):
                keys.append(change["key"])
            if change.get("removed"):
                state["values"].pop(change["key"], None)
            else:
                state["values"][change["key"]] = change["value"]
        state["token"], state["identity"] = answer["token"], answer["identityToken"]
        told = [(reason, keys)] if reason != "none" else []
        refused = [item["key"] for item in answer["refused"]]
        return told + ([("quotaViolation", refused)] if refused else [])

    def account(self):
        return self._ask("ubiquity/1", "account", None)

    def _ask(self, root, operation, body):
        """Asks the first node that answers. A node that is away makes place for the next one."""
        query = urllib.parse.urlencode(self.credentials)
        path = f"{root}/{self.container}/{self.environment}/{operation}?{query}"
        data = None if body is None else json.dumps(body).encode()
        for _ in self.urls:
            try:
                request = urllib.request.Request(f"{self.urls[0].rstrip('/')}/{path}", data)
                with urllib.request.urlopen(request, timeout=(body or {}).get("wait", 0) + 10) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                # 429 and 503 say when to come again; anything else is this client's mistake.
                if error.code not in (429, 500, 503):
                    raise ValueError(error.read().decode()) from error
                failure = error
            except OSError as error:
                failure = error
            self.urls.append(self.urls.pop(0))
        raise OSError(str(failure))

    def _now(self):
        return int(self.clock() * 1000)

    def _save(self):
        """Called with the lock held. The file is replaced as a whole."""
        with open(self.path + ".new", "w") as file:
            json.dump(self.state, file)
        os.replace(self.path + ".new", self.path)
