"""A chat of two users in a terminal, with the other's presence.

    python examples/chat.py http://127.0.0.1:8080 alice bob

The server runs with --dev, which hands out tokens; your own backend signs them otherwise.
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request

from rollcall import Client, Message, Presence


def dev_token(url: str, user: str) -> str:
    request = urllib.request.Request(f"{url.rstrip('/')}/dev/token", json.dumps({"user": user}).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["token"])


async def main(url: str, user: str, other: str) -> None:
    async def get_token() -> str:
        return await asyncio.to_thread(dev_token, url, user)

    def show_message(message: Message) -> None:
        print(f"{message['sender_id']}: {message.get('body', '(deleted)')}", flush=True)

    def show_presence(presence: Presence) -> None:
        print(f"-- {presence['user_id']} is {presence['status']}", flush=True)

    async with Client(url, get_token=get_token) as client:
        client.on("message", show_message)
        client.on("presence", show_presence)
        await client.subscribe_presence([other])
        chat = (await client.direct_chat(other))["chat_id"]
        await client.open_chat(chat, after_sequence=0)
        while line := await asyncio.to_thread(sys.stdin.readline):
            await client.send_message(chat, line.rstrip("\n") or " ")


if len(sys.argv) != 4:
    sys.exit("usage: chat.py URL USER OTHER_USER")
asyncio.run(main(*sys.argv[1:]))
