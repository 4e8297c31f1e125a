"""Requests, the outbox, back-off and tokens, without a server."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import time
from typing import Any

import pytest

from rollcall.backoff import backoff_delay, retry_delay
from rollcall.errors import RollcallError
from rollcall.outbox import OUTBOX_MAX, SEND_ATTEMPTS_MAX, Entry, Outbox
from rollcall.presence import PRESENCE_CACHE_MAX, PresenceCache
from rollcall.requests import PENDING_REQUESTS_MAX, Requests
from rollcall.tokens import TokenSource, token_expiry
from rollcall.types import MessageAck, Presence


def jwt(expiry: float) -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"exp": expiry}).encode()).decode().rstrip("=")
    return f"e30.{payload}.x"


def presence(user: str, version: int, status: Any = "online") -> Presence:
    return {"user_id": user, "status": status, "in_call": False, "last_seen": None, "version": version}


# Back-off


def test_backoff_doubles_to_sixteen_seconds_with_jitter() -> None:
    assert [backoff_delay(attempt, lambda: 0.5) for attempt in range(6)] == [1, 2, 4, 8, 16, 16]
    assert backoff_delay(0, lambda: 0.0) == pytest.approx(0.8)
    assert backoff_delay(4, lambda: 0.999999) == pytest.approx(19.2, abs=0.001)
    assert backoff_delay(100000, lambda: 0.5) == 16


def test_the_delay_that_the_server_asks_for_takes_precedence() -> None:
    assert retry_delay(RollcallError("RATE_LIMITED", "", retry_after_seconds=0.3), 5, lambda: 0.5) == 0.3
    assert retry_delay(RollcallError("SERVER_BUSY", ""), 1, lambda: 0.5) == 2


# Presence


def test_presence_is_ordered_by_version_and_unknown_always_applies() -> None:
    cache = PresenceCache()
    assert cache.apply(presence("bob", 5))
    assert not cache.apply(presence("bob", 4, "offline"))
    assert not cache.apply(presence("bob", 6))  # newer, and the same to see
    assert cache.apply(presence("bob", 0, "unknown"))
    assert cache.apply(presence("bob", 3))


def test_the_presence_cache_is_bounded_and_keeps_subscribed_users() -> None:
    cache = PresenceCache()
    cache.subscribe(["user-0"])
    for number in range(PRESENCE_CACHE_MAX + 5):
        cache.apply(presence(f"user-{number}", 1))
    assert cache.get("user-0") and cache.get("user-5") is None and cache.get("user-6")


# Requests


class Wire:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.open = True
        self.requests = Requests(self.sent.append, lambda early: self.open)


def test_a_request_waits_for_a_connection_and_an_idempotent_one_is_repeated() -> None:
    async def run() -> None:
        wire = Wire()
        wire.open = False
        once = asyncio.ensure_future(wire.requests.request("call_end", {}))
        again = asyncio.ensure_future(wire.requests.request("open_chat", {}, idempotent=True))
        await asyncio.sleep(0)
        assert wire.sent == []
        wire.open = True
        wire.requests.flush()
        wire.requests.connection_lost()
        wire.requests.flush()
        assert [frame["type"] for frame in wire.sent] == ["call_end", "open_chat", "open_chat"]
        assert wire.requests.settle({"type": "ok", "id": wire.sent[-1]["id"]})
        assert (await again)["type"] == "ok"
        with pytest.raises(RollcallError, match="DISCONNECTED"):
            await once

    asyncio.run(run())


def test_a_request_without_a_reply_times_out_and_a_late_reply_is_ignored() -> None:
    async def run() -> None:
        wire = Wire()
        with pytest.raises(RollcallError, match="TIMEOUT"):
            await wire.requests.request("heartbeat", {}, timeout=0.01)
        assert not wire.requests.settle({"type": "ok", "id": "1"})

    asyncio.run(run())


def test_requests_are_bounded() -> None:
    async def run() -> None:
        wire = Wire()
        waiting = [asyncio.ensure_future(wire.requests.request("x", {})) for _ in range(PENDING_REQUESTS_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(RollcallError, match="QUEUE_FULL"):
            await wire.requests.request("x", {})
        wire.requests.fail_all(RollcallError("CLOSED", "closed"))
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, RollcallError) and result.code == "CLOSED" for result in results)

    asyncio.run(run())


# Outbox


class Post:
    """An outbox whose server answers with what the test says."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.sent: list[str] = []
        self.open = True
        self.outbox = Outbox(self.send, lambda: self.open, lambda: 0.5)

    async def send(self, entry: Entry) -> MessageAck:
        await asyncio.sleep(0)
        self.sent.append(entry.body)
        code = self.answers.pop(0) if self.answers else ""
        if code == "DISCONNECTED":
            self.open = False
        if code:
            raise RollcallError(code, code, retry_after_seconds=0.001)
        return {"chat_id": entry.chat_id, "client_message_id": entry.client_message_id, "message_id": "m",
                "sequence": len(self.sent), "duplicate": False}


def test_messages_of_a_chat_keep_their_order_over_retries_and_connections() -> None:
    async def run() -> None:
        post = Post("SERVICE_UNAVAILABLE", "RATE_LIMITED", "DISCONNECTED")
        acks = [post.outbox.add("c", body, body) for body in ("one", "two")]
        while post.open:
            await asyncio.sleep(0.001)
        post.open = True
        post.outbox.flush()
        await asyncio.gather(*acks)
        assert post.sent == ["one", "one", "one", "one", "two"] and len(post.outbox) == 0

    asyncio.run(run())


def test_a_refused_message_fails_and_the_next_one_goes() -> None:
    async def run() -> None:
        post = Post("FORBIDDEN")
        refused, accepted = [post.outbox.add("c", body, body) for body in ("one", "two")]
        with pytest.raises(RollcallError, match="FORBIDDEN"):
            await refused
        await accepted

    asyncio.run(run())


def test_a_message_fails_after_the_last_attempt() -> None:
    async def run() -> None:
        post = Post(*["SERVER_BUSY"] * 99)
        with pytest.raises(RollcallError, match="SERVER_BUSY"):
            await post.outbox.add("c", "1", "one")
        assert len(post.sent) == SEND_ATTEMPTS_MAX

    asyncio.run(run())


def test_the_outbox_is_bounded_and_fails_as_a_whole() -> None:
    async def run() -> None:
        post = Post()
        post.open = False
        acks = [post.outbox.add("c", str(number), "x") for number in range(OUTBOX_MAX)]
        with pytest.raises(RollcallError, match="QUEUE_FULL"):
            post.outbox.add("c", "more", "x")
        post.outbox.fail_all(RollcallError("CLOSED", "closed"))
        results = await asyncio.gather(*acks, return_exceptions=True)
        assert all(isinstance(result, RollcallError) for result in results)

    asyncio.run(run())


# Tokens


def test_the_expiry_of_a_token_is_read_and_nonsense_never_expires() -> None:
    assert token_expiry(jwt(1234)) == 1234
    assert token_expiry("nonsense") == math.inf and token_expiry("a.b.c") == math.inf


def test_a_token_is_used_until_it_expires_and_replaced_when_refused() -> None:
    fresh = jwt(time.time() + 3600)
    source = TokenSource(jwt(time.time() - 1), lambda: fresh)
    assert asyncio.run(source.current()) == fresh
    assert source.discard() and asyncio.run(source.current()) == fresh
    assert not TokenSource(fresh, None).discard()


def test_a_token_is_refreshed_a_minute_before_its_end_or_at_half_of_a_short_life() -> None:
    assert TokenSource(jwt(time.time() + 600), None).refresh_wait(0) == pytest.approx(540, abs=1)
    assert TokenSource(jwt(time.time() + 20), None).refresh_wait(0) == pytest.approx(10, abs=1)
    assert TokenSource(jwt(time.time() + 600), None).refresh_wait(300) == pytest.approx(240, abs=1)


def test_a_client_needs_a_token() -> None:
    with pytest.raises(TypeError):
        TokenSource(None, None)
