"""A page in Debian's Firefox with a service worker, and a stand-in of the push service that this browser talks to.

The browser's side is a WebSocket, as Mozilla's push service has; the application servers' side is RFC 8030 over TLS. The
stand-in passes the encrypted content on and cannot read it: the browser decrypts.
"""

import base64
import http.server
import json
import os
import subprocess
import threading
import uuid

import websockets.exceptions
import websockets.sync.server

PREFERENCES = {
    "dom.push.testing.allowInsecureServerURL": True,
    "dom.push.testing.ignorePermission": True,
    "permissions.default.desktop-notification": 1,
    "dom.serviceWorkers.testing.enabled": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "browser.aboutwelcome.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "http://127.0.0.1:1/",
    "security.sandbox.content.level": 0,
}

PAGE = """<!DOCTYPE html><meta charset=utf-8><title>Books</title><script>
const say = (what, text) => fetch('/say/' + what, {method: 'POST', body: String(text)});
// In a fresh profile the first subscription waits for ever, and that of a second load does not.
const again = setTimeout(() => location.reload(), 5000);
(async () => {
  try {
    await navigator.serviceWorker.register('/worker.js');
    const worker = await navigator.serviceWorker.ready;
    const key = Uint8Array.from(atob('%(key)s'.replace(/-/g, '+').replace(/_/g, '/')), c => c.charCodeAt(0));
    const subscription = await worker.pushManager.subscribe({userVisibleOnly: true, applicationServerKey: key});
    clearTimeout(again);
    const answer = await fetch('%(register)s', {method: 'POST', body: JSON.stringify(subscription)});
    await say(answer.ok ? 'registered' : 'error', await answer.text());
    while (await (await fetch('/leave')).text() !== 'yes') await new Promise(done => setTimeout(done, 200));
    await say('left', await subscription.unsubscribe());
  } catch (error) { await say('error', error); }
})();
</script>"""

WORKER = """self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', event => event.waitUntil(clients.claim()));
self.addEventListener('push', event => event.waitUntil((async () => {
  await fetch('/say/push', {method: 'POST', body: event.data.text()});
  await self.registration.showNotification(event.data.json().aps.alert.body);
})()));"""


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def log_message(self, *_):
        pass


class Noticeboard:
    """What has been said, by kind."""

    def __init__(self):
        self.said, self.lock = {}, threading.Condition()

    def say(self, what, text):
        with self.lock:
            self.said[what] = text
            self.lock.notify_all()

    @property
    def error(self):
        return self.said.get("error", "")

    def wait(self, what, patience):
        """What was said of it; nothing after this many seconds, or once an error has been said."""
        with self.lock:
            self.lock.wait_for(lambda: what in self.said or "error" in self.said, patience)
            return self.said.get(what)


class PushService(Noticeboard):
    def __init__(self, authority):
        super().__init__()
        self.channels = {}
        service = self

        class Handler(Quiet):
            def do_POST(self):
                self.answer(service.receive(self.path, dict(self.headers), self.body()))

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.socket = authority.context("http/1.1").wrap_socket(server.socket, server_side=True)
        self.origin = f"https://localhost:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browsers = websockets.sync.server.serve(self.talk, "127.0.0.1", 0, subprotocols=["push-notification"])
        self.url = f"ws://127.0.0.1:{browsers.socket.getsockname()[1]}/"
        threading.Thread(target=browsers.serve_forever, daemon=True).start()

    def talk(self, wire):
        try:
            for text in wire:
                message = json.loads(text)
                kind = message.get("messageType")
                if kind == "hello":
                    answer = {"messageType": "hello", "uaid": uuid.uuid4().hex, "status": 200, "use_webpush": True,
                              "broadcasts": {}}
                elif kind == "register":
                    path = f"/push/{uuid.uuid4().hex}"
                    self.channels[path] = (wire, message["channelID"])
                    answer = {"messageType": "register", "channelID": message["channelID"], "status": 200,
                              "pushEndpoint": self.origin + path}
                elif kind == "unregister":
                    self.channels = {path: one for path, one in self.channels.items() if one[1] != message["channelID"]}
                    answer = {"messageType": "unregister", "channelID": message["channelID"], "status": 200}
                    self.say("unregistered", message["channelID"])
                elif kind is None:
                    answer = {}
                else:
                    continue
                wire.send(json.dumps(answer))
        except websockets.exceptions.ConnectionClosed:
            pass

    def receive(self, path, headers, content):
        if path not in self.channels:
            self.say("gone", path)
            return 410
        if headers.get("Content-Encoding") != "aes128gcm" or "TTL" not in headers:
            self.say("error", str(headers))
            return 400
        wire, channel = self.channels[path]
        wire.send(json.dumps({
            "messageType": "notification", "channelID": channel, "version": uuid.uuid4().hex, "ttl": int(headers["TTL"]),
            "data": base64.urlsafe_b64encode(content).rstrip(b"=").decode(), "headers": {"encoding": "aes128gcm"}}))
        return 201


class Page(Noticeboard):
    """The page, its origin's server, and a headless Firefox that shows it."""

    def __init__(self, work, service, key, register):
        super().__init__()
        self.leaves = False
        page = self
        padded = key + "=" * (-len(key) % 4)

        class Handler(Quiet):
            def do_GET(self):
                if self.path == "/":
                    self.answer(200, (PAGE % {"key": padded, "register": register}).encode(), "text/html")
                elif self.path == "/worker.js":
                    self.answer(200, WORKER.encode(), "text/javascript")
                elif self.path == "/leave":
                    self.answer(200, b"yes" if page.leaves else b"no")
                else:
                    self.answer(404)

            def do_POST(self):
                page.say(self.path.removeprefix("/say/"), self.body().decode())
                self.answer(200)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        profile = os.path.join(work, "profile")
        os.mkdir(profile)
        with open(os.path.join(profile, "user.js"), "w") as file:
            for name, value in {**PREFERENCES, "dom.push.serverURL": service.url}.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        self.process = subprocess.Popen(
            ["firefox-esr", "--headless", "--no-remote", "--profile", profile,
             f"http://localhost:{server.server_address[1]}/"],
            env={**os.environ, "HOME": work}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def leave(self):
        self.leaves = True

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
