"""Documents: copies, removals, packages, and listings among locks."""
import base64, os

from .attack import Attack, Client, HOSTILE
from stratus import check


class DAV(Attack):
    """Requests of WebDAV in a folder of files."""

    expected = (200, 201, 204, 207)
    file_count, file_size = 60, 500_000

    def ask(self, client, method, path, body=None, **headers):
        return client.ask(method, client.gateway.dav(f"Documents/{path}", HOSTILE), body, {
            **client.gateway.sign(self.user), **{name.replace("_", "-"): value for name, value in headers.items()}})

    def destination(self, client, path):
        return client.gateway.url + client.gateway.dav(f"Documents/{path}", HOSTILE)

    def prepare(self):
        client = Client(self.stand.gateways[0], self.user)
        content = os.urandom(self.file_size)
        client.must("MKCOL", lambda: self.ask(client, "MKCOL", "folder"))
        for number in range(self.file_count):
            client.must("PUT", lambda: self.ask(client, "PUT", f"folder/f{number}", content))


class CopyLoop(DAV):
    name, seconds, cost, clients, outlives = "documents: copies of a folder of 30 MB", 4.0, 2.0, 4, True

    def send(self, client, turn):
        return self.ask(client, "COPY", "folder", Destination=self.destination(client, f"copy-{id(client)}"))


class RefusedCopies(DAV):
    """A folder that is too large to be copied."""

    name, seconds, cost, expected = "documents: copies that are refused for their size", 2.0, 3.0, (201, 204, 403, 409, 413, 507)
    file_count = 70

    def send(self, client, turn):
        return self.ask(client, "COPY", "folder", Destination=self.destination(client, "copy"))


class Removal(DAV):
    """A folder of 1,440 files of 500 KB is removed: the answer comes at once, and its work afterwards."""

    name, seconds, cost, outlives = "documents: removal of a folder of 1,440 files", 4.0, 10.0, True

    def prepare(self):
        super().prepare()
        client = Client(self.stand.gateways[0], self.user)
        client.must("MKCOL", lambda: self.ask(client, "MKCOL", "all"))
        for number in range(24 if self.is_long else 8):
            client.must("COPY", lambda: self.ask(client, "COPY", "folder", Destination=self.destination(client, f"all/{number}")))

    def send(self, client, turn):
        return self.ask(client, "DELETE", "all")

    def loop(self, number, until):
        super().loop(number, 0)


class Packages(Attack):
    name, seconds, cost = "documents: 150 packages of 999 files in a request", 3.0, 0.5
    expected = (200, 400, 413)

    def send(self, client, turn):
        files = [{"path": f"f{number}", "content": ""} for number in range(999)]
        return client.documents("items/modify", {"device": "a", "now": 1, "operations": [
            {"operation": "create", "kind": "package", "folder": "documents", "name": f"p{turn}-{number}", "files": files}
            for number in range(150)]})


class LockedListing(DAV):
    """256 shared locks on a folder, whose owners are of 1 KB, and a listing that does not ask for them."""

    name, seconds, cost, file_count, file_size = "documents: a listing among locks", 4.0, 3.0, 200, 10

    def prepare(self):
        super().prepare()
        client = Client(self.stand.gateways[0], self.user)
        owner = "<a>b</a>" * 70
        body = ('<lockinfo xmlns="DAV:"><lockscope><shared/></lockscope><locktype><write/></locktype><owner>'
                f"{owner}</owner></lockinfo>")
        for number in range(256):
            status, answer = self.ask(client, "LOCK", "folder", body, Depth="infinity", Timeout="Second-3600")
            if status == 423 and number > 0:
                break
            check(status == 200, f"LOCK: {status} {answer}")

    def send(self, client, turn):
        return self.ask(client, "PROPFIND", "folder", '<propfind xmlns="DAV:"><prop><getetag/></prop></propfind>', Depth="1")


ATTACKS = [CopyLoop, RefusedCopies, Removal, Packages, LockedListing]
