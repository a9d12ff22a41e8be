"""Places: requests that wait and streams that do not end, of one tenant, as many as a node holds."""
import json, socket, time

from .attack import Attack, Client, HONEST, HOSTILE


class Held(Attack):
    """Connections from several addresses, each with a request that is not answered for long. Meanwhile users of the other
    container ask for places, which nobody may have taken from them."""

    # So many connections of an address are served.
    ADDRESS_MAX = 2_000
    seconds, cost, shrinks = 6.0, 2.0, True

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
        """Says how many have their place: a wait is not answered yet, and a stream does not end."""
        answers = {}
        for one in self.held:
            one.setblocking(False)
            try:
                status = one.recv(12)[9:].decode() or "cut"
            except BlockingIOError:
                status = "none"
            except OSError:
                status = "cut"
            answers[status] = answers.get(status, 0) + 1
            one.close()
        self.detail = f"{len(self.held)} connections were answered: {answers}"


class Waits(Held):
    name, wanted = "places: 10,000 waits of one user", 10_100

    def come(self, newcomer):
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
    name, wanted = "places: 2,000 live streams of 63 users", 2_000

    def come(self, newcomer):
        newcomer.connection.request("GET", newcomer.gateway.records("live", newcomer.user, HONEST) + "&database=1")
        answer = newcomer.connection.getresponse()
        return answer.status, answer.read1(200) if answer.status != 200 else None

    def request(self, gateway, number):
        target = gateway.records("live", f"stratus-user-stream{number % 63}", HOSTILE)
        return f"GET {target}&database=1&databaseSyncToken= HTTP/1.1\r\nHost: a\r\n\r\n".encode()


class Idle(Held):
    name, wanted, seconds = "places: 2,000 connections that say nothing", 2_000, 2.0

    def request(self, gateway, number):
        return b""


ATTACKS = [Waits, Streams, Idle]
