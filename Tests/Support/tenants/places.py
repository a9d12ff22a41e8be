"""Places: requests that wait and streams that do not end, of one tenant, as many as a node holds."""
import json, socket, time

from .attack import Attack, Client, HONEST, HOSTILE


class Held(Attack):
    """Connections from several addresses, each with a request that is not answered for long. Meanwhile users of the other
    container ask for places, which nobody may have taken from them."""

    # So many connections of an address are served.
    ADDRESS_MAX = 2_000
    seconds, cost, shrinks = 6.0, 3.0, True
    # Whether more ask than there are places, so that some are told to come later.
    fills = True

    def __init__(self, stand, is_long):
        super().__init__(stand, is_long)
        if is_long and self.fills:
            self.seconds = 25.0

    def begin(self):
        self.held, gateway = [], self.stand.gateways[0]
        for number in range(self.wanted if self.is_long else self.wanted // 5):
            one = socket.socket()
            one.bind((f"127.0.0.{2 + number // self.ADDRESS_MAX}", 0))
            try:
                one.connect((gateway.host, gateway.port))
                one.sendall(self.request(gateway, number))
            except OSError as error:
                self.note_wrong(f"connection {number}: {error!r}")
                break
            self.held.append(one)
        until = time.monotonic() + 60
        while self.fills and not self.is_full(self.answers()) and time.monotonic() < until:
            time.sleep(0.2)

    def answers(self):
        """How many were answered with which status. A wait that has its place is not answered yet, and a stream does not end."""
        answers = {}
        for one in self.held:
            try:
                text = one.recv(4_096, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                status = "ended" if b"retry: 30000" in text else text[9:12].decode() or "cut"
            except BlockingIOError:
                status = "none"
            except OSError:
                status = "cut"
            answers[status] = answers.get(status, 0) + 1
        return answers

    @staticmethod
    def is_full(answers):
        """Some were told to come later, or gave way to others of their container."""
        return "503" in answers or "ended" in answers

    def send(self, client, turn):
        time.sleep(0.1)
        newcomer = Client(client.gateway, f"stratus-user-newcomer{turn % 20}", HONEST, timeout=10)
        status, answer = self.come(newcomer)
        newcomer.connection.close()
        # Here busy is no answer.
        return status if status == 200 else 0, f"a newcomer is answered {status} {answer}"

    def come(self, newcomer):
        """One of the other container asks for a place. Returns the status and what was answered."""
        return newcomer.records("records/lookup", {"records": [{"recordName": "none"}]})

    def finish(self):
        answers = self.answers()
        if self.fills and not self.is_full(answers):
            self.note_wrong(f"there was room for all: {answers}")
        for one in self.held:
            one.close()
        self.detail = f"{len(self.held)} connections were answered: {answers}"


class Waits(Held):
    name, wanted = "places: 10,000 waits of one user", 10_100

    def come(self, newcomer):
        return self.poll(newcomer) if self.count % 2 else self.wait(newcomer)

    @staticmethod
    def poll(newcomer):
        """A poll that is not answered has its place: there is nothing to tell."""
        target = newcomer.gateway.device("tokens/create", newcomer.user, HONEST)
        status, made = newcomer.post(target, {"apnsEnvironment": "development"})
        if status != 200:
            return status, made
        newcomer.connection.sock.settimeout(0.5)
        try:
            status, answer = newcomer.ask("GET", "/" + made["webcourierURL"].split("/", 3)[3])
        except TimeoutError:
            return 200, None
        return 0, f"a poll is answered {status} {answer}"

    @staticmethod
    def wait(newcomer):
        target = newcomer.gateway.key_values("sync", newcomer.user, HONEST)
        status, answer = newcomer.post(target, {"device": "a"})
        if status != 200:
            return status, answer
        return newcomer.post(target, {"device": "a", "token": answer["token"], "identityToken": answer["identityToken"], "wait": 1})

    def prepare(self):
        client = Client(self.stand.gateways[0], self.user)
        answer = client.must("sync", lambda: client.post(client.gateway.key_values("sync", self.user, HOSTILE), {"device": "a"}))
        # A device has one wait: so these are many.
        self.body = json.dumps({"device": "%06d", "token": answer["token"], "identityToken": answer["identityToken"], "wait": 55})

    def request(self, gateway, number):
        target = gateway.key_values("sync", self.user, HOSTILE)
        body = (self.body % number).encode()
        return f"POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Streams(Held):
    name, wanted = "places: 2,000 live streams of 63 users", 2_010

    def come(self, newcomer):
        newcomer.connection.request("GET", newcomer.gateway.records("live", newcomer.user, HONEST) + "&database=1")
        answer = newcomer.connection.getresponse()
        return answer.status, answer.read1(200) if answer.status != 200 else None

    def request(self, gateway, number):
        target = gateway.records("live", f"stratus-user-stream{number % 63}", HOSTILE)
        return f"GET {target}&database=1&databaseSyncToken= HTTP/1.1\r\nHost: a\r\n\r\n".encode()


class Idle(Held):
    name, wanted, seconds = "places: 2,000 connections that say nothing", 2_000, 2.0
    fills = False

    def request(self, gateway, number):
        return b""


ATTACKS = [Waits, Streams, Idle]
