"""Members of chats on different gateways, over plain sockets: how much a message and each delivery cost the fleet."""

import base64
import json
import os
import selectors
import socket
import time
import urllib.request

import servers

USERS_MAX = 400
SEND_SECONDS_MAX = 300
IN_FLIGHT = 2  # messages of each chat


class Line:
    """One WebSocket connection."""

    def __init__(self, port, token):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.bytes = 0
        self.left = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            (f"GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer {token}\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.left:
            self.left += self.socket.recv(65536)
        head, _, self.left = self.left.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise servers.Unavailable(f"a member is refused: {head.decode(errors='replace')}")
        while not any(message["type"] == "connection_established" for message in self.messages()):
            self.left += self.socket.recv(65536)

    def send(self, message):
        payload = json.dumps(message).encode()
        head = bytes([0x81, 0x80 | len(payload)]) if len(payload) < 126 else (
            bytes([0x81, 0x80 | 126]) + len(payload).to_bytes(2, "big"))
        frame = head + bytes(4) + payload  # a mask of zeros
        self.bytes += len(frame)
        self.socket.sendall(frame)

    def receive(self):
        data = self.socket.recv(65536)
        if not data:
            raise servers.Unavailable("a member of a chat lost its connection")
        self.bytes += len(data)
        self.left += data
        return self.messages()

    def messages(self):
        """The whole messages received so far."""
        found = []
        while len(self.left) >= 2:
            start, length = 2, self.left[1] & 0x7F
            if length == 126:
                start, length = 4, int.from_bytes(self.left[2:4], "big")
            if len(self.left) < start + length:
                break
            payload, opcode = self.left[start:start + length], self.left[0] & 15
            self.left = self.left[start + length:]
            if opcode == 1:
                found.append(json.loads(payload))
        return found


class Chats:
    """Chats of `members`; the first member of each sends. No two members of a chat that follow each other share a gateway."""

    def __init__(self, fleet, members, chats):
        if members * chats > USERS_MAX:
            raise ValueError("too many members")
        with open(fleet.tokens) as file:
            tokens = [line.strip() for line in file][-USERS_MAX:]
        self.names = [f"user{fleet.users + number}" for number in range(USERS_MAX)]
        self.members = members
        self.lines = []
        self.chats = []
        self.selector = selectors.DefaultSelector()
        for chat in range(chats):
            first = chat * members
            self.chats.append(create_chat(fleet.gateways[0].port, tokens[first], f"costs-{members}-{chat}",
                                          self.names[first + 1:first + members]))
            for number in range(members):  # the sender on the first gateway, all others elsewhere
                gateway = fleet.gateways[0 if number == 0 else 1 + number % (len(fleet.gateways) - 1)]
                line = Line(gateway.port, tokens[first + number])
                self.lines.append(line)
                self.selector.register(line.socket, selectors.EVENT_READ, line)

    def __enter__(self):
        time.sleep(1)  # until the routes are known
        return self

    def __exit__(self, *_):
        for line in self.lines:
            line.socket.close()
        self.selector.close()

    def send(self, count):
        """Sends messages until all were acknowledged and delivered; returns bytes per message and delivery."""
        senders = self.lines[::self.members]
        for line in self.lines:
            line.bytes = 0
        sent = {line: 0 for line in senders}
        acknowledged = delivered = 0
        each = count // len(senders)
        deadline = time.monotonic() + SEND_SECONDS_MAX

        def send_next(line):
            if sent[line] < each:
                sent[line] += 1
                line.send({"type": "send_message", "chat_id": self.chats[senders.index(line)],
                           "client_message_id": f"m{sent[line]}", "body": "x" * 64})

        for line in senders:
            for _ in range(IN_FLIGHT):
                send_next(line)
        goal = each * len(senders)
        while acknowledged < goal or delivered < goal * (self.members - 1):
            if time.monotonic() > deadline:
                raise servers.Unavailable(f"{acknowledged} of {goal} messages acknowledged, {delivered} delivered")
            for key, _ in self.selector.select(1):
                for message in key.data.receive():
                    if message["type"] == "message_ack":
                        acknowledged += 1
                        send_next(key.data)
                    elif message["type"] == "message" and key.data not in sent:
                        delivered += 1
                    elif message["type"] == "error":
                        raise servers.Unavailable(f"a message is refused: {message}")
        others = sum(line.bytes for line in self.lines) - sum(line.bytes for line in senders)
        return {"sender_bytes": sum(line.bytes for line in senders) / goal, "recipient_bytes": others / max(1, delivered)}


def create_chat(port, token, chat_id, members):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chats", method="POST",
        data=json.dumps({"chat_id": chat_id, "members": members}).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["chat_id"]
