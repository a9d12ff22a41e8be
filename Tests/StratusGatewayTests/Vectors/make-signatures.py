"""Signs requests as clients do, with PyPI's `cryptography`: writes signatures.json beside itself.

The key is the one of the reference's worked example, SHA-256 of an ASCII text, so that the file can be
made again; ECDSA draws a nonce, so it is another file each time and as good."""

import base64
import hashlib
import json
import pathlib

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

scalar = int.from_bytes(hashlib.sha256(b"cloudkit reference example key 1").digest(), "big")
key = ec.derive_private_key(scalar, ec.SECP256R1())
pem = key.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()

path = "/database/1/iCloud.org.example.shelves/development/public/records/query"
private = path.replace("/public/", "/private/")
query = "ckjsBuildVersion=2420ProjectDev22&ckjsVersion=2.6.4"
body = '{"query":{"recordType":"Book"}}'
current = "/database/1/iCloud.org.example.shelves/development/public/users/current"
production = path.replace("/development/", "/production/")
date = "2024-03-05T09:30:00Z"

# name, date, path, query, body, what is signed as the subpath, what stands for the body's hash
HASH = None
rows = [
    ("CloudKit JS: path and query", date, path, query, body, path + "?" + query, HASH),
    ("requests-cloudkit: path and query, no body", date, current, "a=1", "", current + "?a=1", HASH),
    ("MistKit: an empty string for no body", date, current, "", "", current, ""),
    ("MistKit: with a query", date, current, "x=%2B", "", current + "?x=%2B", ""),
    ("OpenCloudKit: path alone, a query beside it", date, path, "x=1", body, path, HASH),
    ("OpenCloudKit on Linux: +00:00", "2024-03-05T09:30:00+00:00", path, "", body, path, HASH),
    ("the documented form", date, path, "", body, path, HASH),
    ("no body, its hash", date, current, "", "", current, HASH),
    ("the private database", date, private, "", body, private, HASH),
    ("production", date, production, "", body, production, HASH),
]

out = []
for name, when, at, asked, text, subpath, hashed in rows:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() if hashed is None else hashed
    message = f"{when}:{digest}:{subpath}".encode()
    signature = base64.b64encode(key.sign(message, ec.ECDSA(hashes.SHA256()))).decode()
    out.append({"name": name, "date": when, "path": at, "query": asked, "body": text, "signature": signature})

target = pathlib.Path(__file__).with_name("signatures.json")
target.write_text(json.dumps({"publicKey": pem, "requests": out}, indent=1) + "\n")
