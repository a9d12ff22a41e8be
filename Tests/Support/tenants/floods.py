"""Many cheap requests at once."""
import json, os, shutil, subprocess, time

from .attack import Attack, Client, HOSTILE


class HTTP2(Attack):
    """Debian's h2load: eight connections with a hundred streams each, all of them batches of queries."""

    name, seconds, cost = "flood: HTTP/2 with 800 streams of look-ups", 3.0, 0.2

    def prepare(self):
        Client(self.stand.gateways[0], self.user).save("L", [(f"r{number}", {"u": "x"}) for number in range(20)])
        self.body = os.path.join(self.stand.place, "lookup")
        with open(self.body, "w") as file:
            json.dump({"records": [{"recordName": f"r{number}"} for number in range(20)]}, file)

    def send(self, client, turn):
        if not shutil.which("h2load"):
            print("SKIP h2load: it is not installed", flush=True)
            time.sleep(self.seconds)
            return 200, None
        url = client.gateway.url + client.gateway.records("records/lookup", self.user, HOSTILE)
        done = subprocess.run(["h2load", "-c", "8", "-m", "100", "-D", str(int(self.seconds)), "-d", self.body, url],
                              capture_output=True, text=True, timeout=60)
        line = next((line for line in done.stdout.splitlines() if line.startswith("requests:")), done.stdout + done.stderr)
        return (200 if done.returncode == 0 and " 0 succeeded" not in line else 0), line

    def loop(self, number, until):
        super().loop(number, 0)


class Pipelines(Attack):
    """Twenty clients that ask again as soon as they are answered."""

    name, seconds, cost, clients = "flood: twenty clients of batches of queries", 2.0, 0.2, 20

    def send(self, client, turn):
        query = {"query": {"recordType": "L", "filterBy": [
            {"fieldName": "t", "comparator": "BEGINS_WITH", "fieldValue": {"value": "a"}}]}}
        return client.records("internal/records/query/batch", {"batch": [query] * 20})


ATTACKS = [HTTP2, Pipelines]
