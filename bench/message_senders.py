"""Clients that send chat messages one at a time, each after the acknowledgement of the one before."""

import http.client
import json
import os
import socket

BODY = "." * 100


def headers(token):
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


class Rest:
    """Sends over one kept connection."""

    name, title = "rest", "by REST"

    def __init__(self, port, token):
        self.token = token
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, chat, client_message_id):
        self.connection.request("POST", f"/v1/chats/{chat}/messages",
                                json.dumps({"client_message_id": client_message_id, "body": BODY}),
                                headers(self.token))
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 201:
            raise RuntimeError(f"a message was answered with {answer.status}: {text}")

    def close(self):
        self.connection.close()


class WebSocket:
    """The part of RFC 6455 that short text messages need."""

    name, title = "websocket", "by WebSocket"

    def __init__(self, port, token):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = self.socket.makefile("rb")
        self.socket.sendall(
            f"GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode())
        if b" 101 " not in self.input.readline():
            raise RuntimeError("the WebSocket was refused")
        while self.input.readline() != b"\r\n":
            pass
        self.wait_for("connection_established")

    def receive(self):
        _, length = self.input.read(2)
        if length == 126:
            length = int.from_bytes(self.input.read(2), "big")
        return json.loads(self.input.read(length))

    def wait_for(self, kind):
        while (message := self.receive())["type"] != kind:
            if message["type"] == "error":
                raise RuntimeError(f"the server answered {message}")

    def send(self, chat, client_message_id):
        text = json.dumps({"type": "send_message", "chat_id": chat, "body": BODY,
                           "client_message_id": client_message_id}).encode()
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(text))
        self.socket.sendall(b"\x81\xfe" + len(text).to_bytes(2, "big") + mask + masked)
        self.wait_for("message_ack")

    def close(self):
        self.input.close()
        self.socket.close()


ALL = [Rest, WebSocket]
