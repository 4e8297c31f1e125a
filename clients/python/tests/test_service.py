"""The service client against a real server."""

from __future__ import annotations

import asyncio
import subprocess
import uuid
from typing import Any

import pytest

from rollcall import Client, RollcallError
from rollcall.service import Service

from conftest import BIN, Server, environment


def service_of(server: Server) -> Service:
    return Service(server.url, server.token("backend", scope="service"))


def user() -> str:
    return f"user-{uuid.uuid4().hex[:8]}"


def test_presence_is_not_filtered(server: Server) -> None:
    async def run() -> None:
        name = user()
        async with Client(server.url, get_token=lambda: server.dev_token(name)):
            presences = await asyncio.to_thread(service_of(server).presence, [name, "nobody"])
            assert [each["status"] for each in presences] == ["online", "offline"]

    asyncio.run(run())


def test_a_delivery_reaches_all_devices_of_a_user_with_an_api_key(server: Server) -> None:
    command = [BIN, "key", "create", user(), "--scope", "service", "--data-dir", str(server.data_dir)]
    key = subprocess.run(command, capture_output=True, check=True, text=True, env=environment()).stdout.split()[-1]
    assert key.startswith("rk_")

    async def run() -> None:
        name, got = user(), asyncio.Event()
        async with Client(server.url, get_token=lambda: server.dev_token(name)) as client:
            pushes: list[dict[str, Any]] = []

            def on_delivery(push: dict[str, Any]) -> None:
                pushes.append(push)
                got.set()

            client.on("delivery", on_delivery)
            service = Service(server.url, key)
            assert await asyncio.to_thread(service.deliver, {"id": 7}, users=[name, "nobody"], event="shipped") == 1
            await asyncio.wait_for(got.wait(), 30)
            assert pushes[0]["data"] == {"id": 7} and pushes[0]["event"] == "shipped"
            assert name in await asyncio.to_thread(lambda: list(service.online(page=1)))

    asyncio.run(run())


def test_contacts_are_made_replaced_ended_and_imported(server: Server) -> None:
    async def run() -> None:
        service, name = service_of(server), user()
        friends = [user() for _ in range(4)]

        async def names() -> set[str]:
            return {friend["user_id"] for friend in (await client.friends())[0]}

        async with Client(server.url, get_token=lambda: server.dev_token(name)) as client:
            await asyncio.to_thread(service.add_contact, name, friends[0])
            assert await names() == {friends[0]}
            await asyncio.to_thread(service.set_contacts, name, friends[1:3])
            assert await names() == set(friends[1:3])
            await asyncio.to_thread(service.remove_contact, name, friends[1])
            lines: list[dict[str, Any]] = [{"contact": [name, friends[3]]}, {"contact": "wrong"}]
            counts = await asyncio.to_thread(service.import_lines, lines)
            assert counts["contacts"] == 1 and [error["line"] for error in counts["errors"]] == [2]
            assert await names() == set(friends[2:4])

    asyncio.run(run())


def test_chats_messages_and_tombstones(server: Server) -> None:
    async def run() -> None:
        service, name, other, chat_id = service_of(server), user(), user(), user()
        async with Client(server.url, get_token=lambda: server.dev_token(name)) as client:
            chat = await asyncio.to_thread(service.create_chat, [name], chat_id)
            assert chat["chat_id"] == chat_id
            await asyncio.to_thread(service.add_member, chat_id, other)
            assert set((await client.chat(chat_id))["members"]) == {name, other}
            for sender in (other, None):
                ack = await asyncio.to_thread(service.send_message, chat_id, "hello", client_message_id=f"of-{sender}",
                                              sender_id=sender)
            assert ack["sequence"] == 2 and not ack["duplicate"]
            await asyncio.to_thread(service.delete_message, chat_id, 1)
            first, second = (await client.history(chat_id))["messages"]
            assert first["deleted"] and "body" not in first
            assert second["sender_id"] is None and second["body"] == "hello"
            await asyncio.to_thread(service.remove_member, chat_id, other)
            assert (await client.chat(chat_id))["members"] == [name]

    asyncio.run(run())


def test_a_user_is_not_the_service(server: Server) -> None:
    with pytest.raises(RollcallError) as failure:
        Service(server.url, server.token("alice")).presence(["bob"])
    assert failure.value.status in (401, 403)


def test_deliver_names_exactly_one_kind_of_recipient(server: Server) -> None:
    with pytest.raises(TypeError):
        service_of(server).deliver("x", users=["a"], everyone=True)
    with pytest.raises(TypeError):
        service_of(server).deliver("x")


def test_a_server_that_is_away_is_a_temporary_error() -> None:
    with pytest.raises(RollcallError) as failure:
        Service("http://127.0.0.1:1", "rk_none").presence(["bob"])
    assert failure.value.code == "SERVICE_UNAVAILABLE" and failure.value.retryable
