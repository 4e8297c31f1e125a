"""Shows the presence of a user's friends.

    python3 watch.py ROLLCALL_URL BACKEND_URL USER
"""

import asyncio
import json
import sys
import urllib.parse
import urllib.request

from rollcall import Client, Presence

rollcall_url, backend_url, user = sys.argv[1:]


def fetch_token() -> str:
    with urllib.request.urlopen(f"{backend_url}/token?user={urllib.parse.quote(user)}") as answer:
        return str(json.load(answer)["token"])


def show(presence: Presence) -> None:
    print(f"{presence['user_id']} is {presence['status']}", flush=True)


async def main() -> None:
    async with Client(rollcall_url, get_token=lambda: asyncio.to_thread(fetch_token)) as client:
        client.on("presence", show)
        for friend in (await client.friends())[0]:
            show(friend)
        await asyncio.Event().wait()


asyncio.run(main())
