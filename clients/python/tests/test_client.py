"""The client against a real server. Faults are the subject of clients/scenarios."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from rollcall import Client, Message, Presence, RollcallError

from conftest import Server

SOON_SECONDS = 30


async def eventually(check: Any) -> None:
    async def poll() -> None:
        while not check():
            await asyncio.sleep(0.02)

    await asyncio.wait_for(poll(), SOON_SECONDS)


def user() -> str:
    return f"user-{uuid.uuid4().hex[:8]}"


def client_of(server: Server, name: str) -> Client:
    return Client(server.url, get_token=lambda: server.dev_token(name))


def status_at(viewer: Client, other: Client) -> str | None:
    presence = viewer.presence(other.user_id or "")
    return presence["status"] if presence else None


def test_a_message_reaches_the_other_user_and_moves_the_read_mark(server: Server) -> None:
    async def run() -> None:
        async with client_of(server, user()) as alice, client_of(server, user()) as bob:
            assert alice.user_id and bob.user_id
            chat = (await alice.direct_chat(bob.user_id))["chat_id"]
            got: list[Message] = []
            bob.on("message", got.append)
            ack = await alice.send_message(chat, "héllo")
            await eventually(lambda: got)
            assert got[0]["body"] == "héllo" and got[0]["sequence"] == ack["sequence"] == 1
            assert (await bob.chat(chat))["unread"] == 1
            assert await bob.mark_read(chat, 1) == 1
            chats, cursor = await bob.chats()
            assert [each["unread"] for each in chats] == [0] and cursor is None

    asyncio.run(run())


def test_contacts_see_each_other_come_and_go(server: Server) -> None:
    async def run() -> None:
        async with client_of(server, user()) as alice:
            bob = client_of(server, user())
            await bob.connect()
            assert alice.user_id and bob.user_id
            await alice.request_contact(bob.user_id)
            request = (await bob.contact_requests())["incoming"][0]
            await bob.accept_contact(request["id"])
            await eventually(lambda: status_at(alice, bob) == "online")
            await bob.close()
            await eventually(lambda: status_at(alice, bob) == "offline")
            friends, more = await alice.friends()
            assert [each["user_id"] for each in friends] == [bob.user_id] and not more

    asyncio.run(run())


def test_settings_blocks_and_the_call_history(server: Server) -> None:
    async def run() -> None:
        async with client_of(server, user()) as alice:
            assert (await alice.update_me(display_name="Alice"))["display_name"] == "Alice"
            assert (await alice.me())["display_name"] == "Alice"
            await alice.block("mallory")
            assert "mallory" in str(await alice.blocks())
            await alice.unblock("mallory")
            assert await alice.calls() == []

    asyncio.run(run())


def test_typing_is_shown_to_those_who_have_the_chat_open(server: Server) -> None:
    async def run() -> None:
        async with client_of(server, user()) as alice, client_of(server, user()) as bob:
            chat = (await alice.create_chat([bob.user_id or ""]))["chat_id"]
            seen: list[dict[str, Any]] = []
            bob.on("typing", seen.append)
            await bob.open_chat(chat)
            assert alice.typing(chat)
            await eventually(lambda: seen)
            assert seen[0]["typing"] is True and seen[0]["user_id"] == alice.user_id

    asyncio.run(run())


def test_a_refused_request_has_the_code_of_the_server(server: Server) -> None:
    async def run() -> None:
        async with client_of(server, user()) as alice:
            with pytest.raises(RollcallError) as failure:
                await alice.open_chat("elsewhere")
            assert failure.value.code == "NOT_FOUND" and not failure.value.retryable
            with pytest.raises(RollcallError) as failure:
                await alice.chat("elsewhere")
            assert failure.value.code == "NOT_FOUND" and failure.value.status == 404
            with pytest.raises(RollcallError, match="INVALID_MESSAGE"):
                await alice.request("shout")

    asyncio.run(run())


def test_a_frame_that_is_too_large_fails_and_the_client_comes_back(server: Server) -> None:
    async def run() -> None:
        async with client_of(server, user()) as alice:
            with pytest.raises(RollcallError, match="MESSAGE_TOO_LARGE"):
                await alice.request("query_presence", {"user_ids": ["x" * 70000]}, idempotent=True)
            await alice.connect()
            assert alice.state == "READY"

    asyncio.run(run())


def test_a_listener_that_fails_does_not_harm_the_connection(server: Server) -> None:
    async def run() -> None:
        async with client_of(server, user()) as alice:
            def fail(_presence: Presence) -> None:
                raise ZeroDivisionError

            alice.on("presence", fail)
            await alice.query_presence([alice.user_id or ""])
            assert alice.state == "READY"

    asyncio.run(run())


def test_close_fails_what_is_pending_and_connect_may_follow(server: Server) -> None:
    async def run() -> None:
        alice = client_of(server, user())
        waiting = asyncio.ensure_future(alice.send_message("c", "never"))
        await asyncio.sleep(0)
        await alice.close()
        with pytest.raises(RollcallError, match="CLOSED"):
            await waiting
        await alice.connect()
        await alice.close()
        assert alice.state == "DISCONNECTED"

    asyncio.run(run())


def test_a_token_source_that_refuses_stops_the_client(server: Server) -> None:
    def signed_out() -> str:
        raise RollcallError("UNAUTHENTICATED", "signed out")

    with pytest.raises(RollcallError, match="signed out"):
        asyncio.run(Client(server.url, get_token=signed_out).connect())


@pytest.mark.parametrize("url", ["ftp://example.org", "example.org"])
def test_an_address_that_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        Client(url, token="x")
