"""Signs in with a real browser: Debian's chromium, driven over its DevTools pipe; nothing to install.

    browser.py URL API_TOKEN CONTAINER ADMIN_URL ADMIN_TOKEN_FILE SCREENSHOTS

A page of another origin asks who it is, gets 421, opens the page in a window of its own, a person types, and
the page hears the token: once by message, once by redirect. One PASS or FAIL line for each step."""

import base64
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

url, token, container, admin, admin_token_file, shots = sys.argv[1:7]
failed = False


def say(good, what, more=""):
    global failed
    failed = failed or not good
    print(("PASS" if good else "FAIL"), "browser:", what, more if not good else "", flush=True)


APP = """<!DOCTYPE html><meta charset=utf-8><title>App</title><h1>App</h1><button id=b>Sign in</button>
<pre id=out></pre><script>
const base = %(base)s, token = %(token)s;
window.messages = [];
window.addEventListener('message', e => window.messages.push([typeof e.data, e.data, e.origin]));
async function ask(user) {
  const r = await fetch(base + '/public/users/caller?ckAPIToken=' + token +
    (user ? '&ckWebAuthToken=' + encodeURIComponent(user) : ''));
  return [r.status, await r.json(), r.headers.get('X-Apple-CloudKit-Web-Auth-Token')];
}
document.getElementById('b').onclick = () => window.open(window.redirect, '', 'width=640, height=525');
</script>"""


class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        base = f"{url}/database/1/{container}/development"
        body = (APP % {"base": json.dumps(base), "token": json.dumps(self.server.token)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class OnTheWay(RuntimeError):
    """A page is asked between the one that has gone and the one that comes."""


class Browser:
    """The DevTools protocol over a pipe: file descriptors 3 and 4, messages ended by a zero byte."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory()
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()

        def attach():
            os.dup2(to_browser, 103)
            os.dup2(from_browser, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-popup-blocking",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"],
            pass_fds=(3, 4), preexec_fn=attach,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.number = 0

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        deadline = time.time() + 30
        while time.time() < deadline:
            while b"\0" not in self.buffer:
                piece = os.read(self.reader, 1 << 16)
                if not piece:
                    raise RuntimeError("the browser ended")
                self.buffer += piece
            text, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    isGone = any(word in answer["error"]["message"] for word in ("context", "navigated"))
                    raise (OnTheWay if isGone else RuntimeError)(answer["error"])
                return answer["result"]
        raise RuntimeError(f"no answer to {method}")

    def pages(self):
        return {t["targetId"]: t for t in self.call("Target.getTargets")["targetInfos"]
                if t["type"] == "page"}

    def attach(self, target):
        return self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def open(self, address):
        return self.call("Target.createTarget", url=address)["targetId"]

    def evaluate(self, session, script, gesture=False):
        result = self.call("Runtime.evaluate", session, expression=script, awaitPromise=True,
                           returnByValue=True, userGesture=gesture)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def click(self, session, selector):
        try:
            self.evaluate(session, f"document.querySelector({json.dumps(selector)}).click()", gesture=True)
        except OnTheWay:
            pass  # the click took the page away before it was answered

    def shoot(self, session, name):
        data = self.call("Page.captureScreenshot", session, format="png")["data"]
        (pathlib.Path(shots) / f"{name}.png").write_bytes(base64.b64decode(data))

    def stop(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.profile.cleanup()


def wait(what, seconds=15):
    deadline = time.time() + seconds
    while time.time() < deadline:
        try:
            value = what()
        except OnTheWay:
            value = None
        if value:
            return value
        time.sleep(0.1)
    return None


def administer(path, body):
    request = urllib.request.Request(
        admin + path, json.dumps(body).encode(),
        {"Authorization": "Bearer " + pathlib.Path(admin_token_file).read_text().strip()})
    return json.load(urllib.request.urlopen(request))


def fill(browser, session, values):
    for name, value in values.items():
        browser.evaluate(
            session, f"document.querySelector('[name={name}]').value = {json.dumps(value)}")
    browser.click(session, "button")


os.makedirs(shots, exist_ok=True)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), App)
threading.Thread(target=server.serve_forever, daemon=True).start()
app = f"http://localhost:{server.server_port}"
place = f"/v1/containers/{container}/environments/development/tokens"
server.token = administer(place, {"name": "page", "origins": [app], "receivesNames": True})["token"]

browser = Browser()
try:
    # By message.
    main = browser.open(app + "/")
    page = browser.attach(main)
    wait(lambda: browser.evaluate(page, "typeof ask === 'function'"))
    first = browser.evaluate(page, "ask()")
    say(first[0] == 421 and first[1]["serverErrorCode"] == "AUTHENTICATION_REQUIRED",
        "a script reads the 421 and its redirectURL", first)
    before = set(browser.pages())
    browser.evaluate(page, f"window.redirect = {json.dumps(first[1]['redirectURL'])};"
                     "document.getElementById('b').click()", gesture=True)
    popup = wait(lambda: next(iter(set(browser.pages()) - before), None))
    window = browser.attach(popup)
    wait(lambda: browser.evaluate(window, "document.querySelector('form') !== null"))
    browser.shoot(window, "sign-in")
    fill(browser, window, {"email": "mara@example.org", "password": "wrong password"})
    wait(lambda: browser.evaluate(window, "document.querySelector('[role=alert]') !== null"))
    say("not right" in (browser.evaluate(window, "document.body.innerText") or ""),
        "a wrong password is told so, on the page")
    browser.shoot(window, "wrong-password")
    browser.click(window, "a[href^='/signup']")
    wait(lambda: browser.evaluate(window, "document.querySelector('[name=given]') !== null"))
    browser.shoot(window, "sign-up")
    styled = browser.evaluate(
        window, "getComputedStyle(document.querySelector('button')).backgroundColor")
    say(styled == "rgb(11, 87, 208)", "the page's own style is allowed by its policy", styled)
    labelled = browser.evaluate(
        window, "[...document.querySelectorAll('input:not([type=hidden])')].every(i => i.labels.length)")
    say(labelled is True, "every field has a label")
    fill(browser, window, {"given": "Mara", "family": "Olsen", "email": "mara@example.org",
                           "password": "correct horse"})
    messages = wait(lambda: browser.evaluate(page, "window.messages.length ? window.messages : null"))
    say(bool(messages) and len(messages) == 1 and messages[0][0] == "object"
        and messages[0][1].get("ckWebAuthToken") and
        messages[0][1]["ckWebAuthToken"] == messages[0][1]["ckSession"] and messages[0][2] == url,
        "one message, an object with both keys, from the sign-in page's origin", messages)
    say(bool(wait(lambda: popup not in browser.pages())), "the window closed itself")
    user = messages[0][1]["ckWebAuthToken"]
    second = browser.evaluate(page, f"ask({json.dumps(user)})")
    say(second[0] == 200 and second[1]["userRecordName"].startswith("_") and second[2] == user,
        "the token signs in, and its successor is readable by script", second)
    saved = browser.evaluate(page, """
        document.cookie = token + '=' + %s; document.cookie.includes(%s)""" % ((json.dumps(user),) * 2))
    say(saved is True, "the token is legal as a cookie's value")
    browser.evaluate(page, f"document.getElementById('out').textContent = "
                     f"JSON.stringify({json.dumps(second[1])}, null, 1)")
    browser.shoot(page, "signed-in")

    # A live stream, read by the browser's own EventSource.
    browser.evaluate(page, """
        const keys = '?ckAPIToken=' + token + '&ckWebAuthToken=' + encodeURIComponent(%s);
        window.modify = (what, body) => fetch(base + '/private/' + what + keys,
            {method: 'POST', body: JSON.stringify(body)}).then(r => r.json());
        window.heard = [];
        (async () => {
          await modify('zones/modify', {operations: [{operationType: 'create', zone: {zoneID: {zoneName: 'Live'}}}]});
          window.live = new EventSource(base + '/private/live' + keys + '&zone=Live&syncToken=');
          live.addEventListener('changes', e => window.heard.push([JSON.parse(e.data), e.lastEventId]));
        })()""" % json.dumps(user))
    began = wait(lambda: browser.evaluate(page, "window.heard.length === 1 && live.readyState === EventSource.OPEN"))
    say(bool(began), "an EventSource of another origin opens, and hears where it stands")
    browser.evaluate(page, """modify('records/modify', {zoneID: {zoneName: 'Live'}, operations: [
        {operationType: 'create', record: {recordType: 'Note', recordName: 'seen'}}]})""")
    heard = wait(lambda: browser.evaluate(page, "window.heard.length === 2 ? window.heard[1] : null"))
    say(bool(heard) and heard[0]["records"][0]["recordName"] == "seen" and heard[1] == heard[0]["syncToken"],
        "a save is an event, with its token as the ID", heard)
    browser.evaluate(page, "live.close()")

    # By redirect.
    server.token = administer(place, {"name": "redirect", "callbackURL": app + "/back?x=1"})["token"]
    other = browser.attach(browser.open(app + "/"))
    wait(lambda: browser.evaluate(other, "typeof ask === 'function'"))
    third = browser.evaluate(other, "ask()")
    browser.evaluate(other, f"location.href = {json.dumps(third[1]['redirectURL'])}")
    wait(lambda: browser.evaluate(other, "document.querySelector('form') !== null"))
    fill(browser, other, {"email": "mara@example.org", "password": "correct horse"})
    wait(lambda: "/back" in (browser.evaluate(other, "location.href") or ""))
    place_now = urllib.parse.urlparse(browser.evaluate(other, "location.href"))
    query = urllib.parse.parse_qs(place_now.query)
    say(place_now.path == "/back" and query.get("x") == ["1"]
        and query.get("ckWebAuthToken") == query.get("ckSession") is not None,
        "the redirect appends both keys to the callback's own query", place_now.query)
    wait(lambda: browser.evaluate(other, "typeof ask === 'function'"))
    fourth = browser.evaluate(other, f"ask({json.dumps(query['ckWebAuthToken'][0])})")
    say(fourth[0] == 200 and fourth[1]["userRecordName"] == second[1]["userRecordName"],
        "and it is the same person", fourth)

    # A page that somebody stored is shown on the origin of the sign-in pages, and may do nothing there.
    keys = urllib.parse.urlencode({"ckAPIToken": server.token, "ckWebAuthToken": query["ckWebAuthToken"][0]})
    stored = f"{url}/dav/{container}/development/Documents/page.html?{keys}"
    script = "localStorage.setItem('acted', 'yes'); document.cookie = 'acted=yes'; opener && opener.postMessage('acted', '*');" \
             "parent.postMessage('acted', '*'); window.acted = true;"
    urllib.request.urlopen(urllib.request.Request(
        stored, f"<!DOCTYPE html><title>stored</title><script>{script}</script>".encode(), method="PUT"))
    urllib.request.urlopen(urllib.request.Request(
        stored.replace("page.html", "page.js"), script.encode(), method="PUT"))
    browser.evaluate(other, "window.messages = []; window.outcome = {};")
    browser.evaluate(other, f"""(async () => {{
        const page = {json.dumps(stored)}, source = page.replace('page.html', 'page.js');
        window.open(page, '', 'width=300, height=300');
        for (const sandbox of [null, 'allow-scripts allow-same-origin']) {{
          const frame = document.createElement('iframe');
          if (sandbox) frame.sandbox = sandbox;
          frame.src = page; document.body.append(frame);
        }}
        const tag = document.createElement('script');
        const loaded = new Promise(end => {{ tag.onload = () => end('loaded'); tag.onerror = () => end('refused'); }});
        tag.src = source; document.body.append(tag);
        outcome.script = await loaded;
        outcome.read = await fetch(page).then(() => 'read', () => 'refused');
        outcome.write = await fetch(page, {{method: 'PUT', body: 'x'}}).then(() => 'written', () => 'refused');
    }})()""", gesture=True)
    time.sleep(1.5)
    outcome = browser.evaluate(other, "({...outcome, messages: window.messages, acted: window.acted === true})")
    say(outcome == {"script": "refused", "read": "refused", "write": "refused", "messages": [], "acted": False},
        "a page of another origin cannot run, read or change a stored file", outcome)
    own = browser.attach(browser.open(url + "/app-passwords"))
    wait(lambda: browser.evaluate(own, "document.querySelector('form') !== null"))
    left = browser.evaluate(own, "[localStorage.getItem('acted'), document.cookie.includes('acted')]")
    say(left == [None, False], "a stored page leaves nothing on the origin of the sign-in pages", left)
    # From the origin itself, as if its own pages showed it.
    inner = browser.evaluate(own, f"""(async () => {{
        const page = {json.dumps(stored)};
        const headers = (await fetch(page).catch(() => null))?.headers;
        const frame = document.createElement('iframe');
        frame.src = page; document.body.append(frame);
        window.open(page);
        await new Promise(end => setTimeout(end, 1000));
        return [headers?.get('Content-Security-Policy') ?? null, localStorage.getItem('acted'), document.cookie.includes('acted')];
    }})()""", gesture=True)
    say(inner[1:] == [None, False], "nor does it act when the origin itself opens it", inner)
finally:
    browser.stop()
sys.exit(1 if failed else 0)
