"""Reads a JSON object of tokens and messages from standard input, verifies and decrypts them, and prints what they say."""

import base64
import json
import sys

import http_ece
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


given = json.load(sys.stdin)
signing = serialization.load_pem_private_key(given["signingKey"].encode(), None).public_key()
provider = jwt.decode(given["providerToken"], signing, algorithms=["ES256"], options={"verify_iat": False})
header = jwt.get_unverified_header(given["providerToken"])
vapid = jwt.decode(given["vapidToken"], signing, algorithms=["ES256"], audience="https://push.example.net")
browser = serialization.load_pem_private_key(given["browserKey"].encode(), None)
plain = http_ece.decrypt(
    decoded(given["message"]), private_key=browser, auth_secret=decoded(given["secret"]), version="aes128gcm")
assert isinstance(browser.curve, ec.SECP256R1)
print(json.dumps({
    "kid": header["kid"], "alg": header["alg"], "iss": provider["iss"], "sub": vapid["sub"],
    "plain": plain.decode()}, sort_keys=True))
