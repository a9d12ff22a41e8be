"""What a save causes: subscriptions, devices, polls."""
import base64, os, threading

from .attack import Attack, Client, HOSTILE

# A point of P-256 (its generator): a key that a browser could have.
POINT = bytes.fromhex("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
                      "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class WordSubscriptions(Attack):
    """As many subscriptions of 122 words that match nothing as one owner may have, followed by devices and polls of one user; then twenty records."""

    name, seconds, cost = "news: subscriptions of many words with devices and polls", 5.0, 12.0
    is_last, outlives, shrinks = True, True, True
    text = " ".join(f"sonne{word:04}" for word in range(180))

    def subscription(self, number):
        words = [" ".join(f"{number:03x}{word:02x}" for word in range(part, part + 61)) for part in (0, 61)]
        return {"recordType": "L", "filterBy": [
            {"fieldName": "t", "comparator": "CONTAINS_ALL_TOKENS", "fieldValue": {"value": text}} for text in words]}

    # 16,000 operands of one owner.
    count_of = {"subscriptions": 131, "devices": 100, "polls": 100}

    def prepare(self):
        client = Client(self.stand.gateways[0], self.user)
        self.stand.control("push", "vapid", "create", "--container", HOSTILE, "--contact", "mailto:push@example.org")
        count = self.count_of["subscriptions"]
        for start in range(0, count, 80):
            client.must("subscriptions", lambda: client.records("subscriptions/modify", {"operations": [
                {"operationType": "create", "subscription": {
                    "subscriptionID": f"s{number}", "subscriptionType": "query", "query": self.subscription(number),
                    "firesOn": ["create", "update"]}} for number in range(start, min(start + 80, count))]}))
        share = 1 if self.is_long else 4
        for number in range(self.count_of["devices"] // share):
            # Nobody listens there, and nothing matches, so nothing is sent.
            client.must("device", lambda: client.post(client.gateway.device("tokens/register", self.user, HOSTILE), {
                "endpoint": f"https://localhost/{number}",
                "keys": {"p256dh": encoded(POINT), "auth": encoded(os.urandom(16))}}))
        self.couriers = []
        for _ in range(self.count_of["polls"] // share):
            made = client.must("poll", lambda: client.post(
                client.gateway.device("tokens/create", self.user, HOSTILE), {"apnsEnvironment": "development"}))
            self.couriers.append("/" + made["webcourierURL"].split("/", 3)[3])

    def begin(self):
        self.polls = [Client(self.stand.gateways[number % len(self.stand.gateways)], self.user)
                      for number in range(len(self.couriers))]
        for client, courier in zip(self.polls, self.couriers):
            client.connection.request("GET", courier)

    def send(self, client, turn):
        return client.records("records/modify", {"operations": [
            {"operationType": "forceUpdate", "record": {"recordType": "L", "recordName": f"n{number}", "fields": {
                "t": {"value": f"{turn} {self.text}"}}}} for number in range(20)]})

    def loop(self, number, until):
        # One request of 45 KB.
        super().loop(number, 0)

    def finish(self):
        for client in self.polls:
            client.connection.close()


class PlainSubscriptions(WordSubscriptions):
    """A thousand subscriptions with one plain filter: what an app that is no attacker comes near to."""

    name, seconds, outlives = "news: a thousand plain subscriptions with devices and polls", 4.0, False
    count_of = {"subscriptions": 960, "devices": 100, "polls": 100}

    def subscription(self, number):
        return {"recordType": "L", "filterBy": [
            {"fieldName": "t", "comparator": "EQUALS", "fieldValue": {"value": f"nobody {number}"}}]}


ATTACKS = [PlainSubscriptions, WordSubscriptions]
