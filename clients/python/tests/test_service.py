"""The service client against a real server."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from rollcall import Client, RollcallError
from rollcall.service import Service

from conftest import Server


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
