"""The backend of an application: it knows who its users are and who their friends are. It signs a token for each user, and
tells Rollcall about friendships.

    python3 backend.py ROLLCALL_URL PORT
"""

import base64
import hashlib
import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from rollcall.service import Service

SECRET = Path("secret").read_text().strip().encode()
TOKEN_SECONDS = 3600


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def sign_token(user: str, scope: str = "") -> str:
    now = int(time.time())
    claims = {"sub": user, "scope": scope, "iat": now, "exp": now + TOKEN_SECONDS}
    text = f"{encode(json.dumps({'alg': 'HS256', 'typ': 'JWT'}).encode())}.{encode(json.dumps(claims).encode())}"
    return f"{text}.{encode(hmac.new(SECRET, text.encode(), hashlib.sha256).digest())}"


class Backend(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        target = urlsplit(self.path)
        if target.path != "/token":
            self.send_error(404)
            return
        # Your own sign-in decides who asks; here everybody is who they say they are.
        self.answer({"token": sign_token(dict(parse_qsl(target.query))["user"])})

    def do_POST(self) -> None:
        target = urlsplit(self.path)
        if target.path != "/friends":
            self.send_error(404)
            return
        query = dict(parse_qsl(target.query))
        Service(sys.argv[1], sign_token("backend", "service")).add_contact(query["user"], query["friend"])
        self.answer({"ok": True})

    def answer(self, value: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Backend).serve_forever()
