"""The life of a connection, from `connection_established` to its end: heartbeats, token renewal, restoring
subscriptions and chats, and handling messages from the server.

Restoring runs in SYNCING: first the presence subscriptions, then every open chat and every chat with a gap. READY
follows when the server has answered all of it; then the requests and messages that waited are sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import datetime, timezone
from typing import Any, Awaitable, Callable, Coroutine, Iterable, cast

from .backoff import Random, backoff_delay, retry_delay
from .chats import Chats
from .errors import RollcallError
from .link import Link
from .outbox import Entry, Outbox
from .presence import PresenceCache
from .requests import Requests
from .tokens import TokenSource
from .types import ChatSnapshot, Message, MessageAck, MessagePage, Presence, ServerMessage, StateChange

RESTORE_PARALLEL = 4
"""Chats restored at the same time after a reconnect; more would reach the rate limit."""

RESTORE_ATTEMPTS_MAX = 10
"""Attempts to restore the subscriptions or a chat before an `error` event reports it."""

log = logging.getLogger("rollcall")

Emit = Callable[[str, Any], None]


class Session:
    def __init__(self, url: str, tokens: TokenSource, random: Random, emit: Emit, ssl_context: Any) -> None:
        self.user_id: str | None = None
        self.connection_id: str | None = None
        self.active: bool | None = None
        self.presence = PresenceCache()
        self.link = Link(url, tokens, random, self, ssl_context)
        self.requests = Requests(self.link.send, self._is_open)
        self.outbox = Outbox(self._send_entry, lambda: self.link.state == "READY", random)
        self.chats = Chats(self._fetch_page, lambda message: emit("message", message), self._on_gap)
        self._tokens = tokens
        self._random = random
        self._emit = emit
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiters: list[asyncio.Future[None]] = []
        self._beat_now = asyncio.Event()
        self._turn = asyncio.Lock()  # of those that wait after RATE_LIMITED
        self._unanswered_since: float | None = None
        self._stopping: asyncio.Future[None] | None = None

    async def connect(self) -> None:
        if self.link.state == "READY":
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.link.start()
        await waiter

    async def close(self) -> None:
        error = RollcallError("CLOSED", "the client was closed")
        await self.link.stop(error)
        self._fail_all(error)

    def set_active(self, active: bool | None) -> None:
        if active != self.active:
            self.active = active
            self._beat_now.set()

    async def request_presences(self, type_: str, user_ids: Iterable[str], **options: Any) -> list[Presence]:
        reply = await self.requests.request(type_, {"user_ids": list(user_ids)}, **(options or {"idempotent": True}))
        return cast("list[Presence]", reply["presences"])

    async def open_chat(self, chat_id: str, *, early: bool = False) -> ChatSnapshot:
        snapshot = cast(ChatSnapshot, await self.requests.request("open_chat", {"chat_id": chat_id},
                                                                  idempotent=not early, early=early))
        self.chats.begin(chat_id, snapshot["latest_sequence"])
        behind = (self.chats.last_sequence(chat_id) or 0) < snapshot["latest_sequence"]
        if behind and not early:
            self._on_gap(chat_id)
        return snapshot

    # The life of a connection

    def on_state(self, change: StateChange) -> None:
        if change["state"] in ("BACKOFF", "DISCONNECTED"):
            self._end_connection()
        if change.get("final"):
            error = change["error"]
            assert isinstance(error, RollcallError)
            self._fail_all(error)
        self._emit("state", change)

    def on_established(self, message: ServerMessage) -> None:
        self.user_id = message["user_id"]
        self.connection_id = message["conn_id"]
        self._unanswered_since = None
        self._start(self._beat(message["heartbeat_interval_seconds"], message["expiry_window_seconds"]))
        if self._tokens.renewable:
            self._start(self._refresh_tokens(_clock_skew(message.get("server_time"))))
        self._emit("connection_established", message)
        self._start(self._restore_all())

    def on_error(self, error: Exception) -> None:
        self._emit("error", error)

    def on_too_large(self) -> None:
        self.requests.too_large()

    def _is_open(self, early: bool) -> bool:
        return self.link.state == "READY" or (early and self.link.state == "SYNCING")

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs work that ends with the connection."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a task failed", exc_info=task.exception())

    def _end_connection(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        self.requests.connection_lost()

    def _fail_all(self, error: RollcallError) -> None:
        self.requests.fail_all(error)
        self.outbox.fail_all(error)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)

    async def _beat(self, interval: float, expiry: float) -> None:
        """Sends heartbeats. The connection is dead when the first unanswered one is older than the expiry window."""
        while True:
            now = time.monotonic()
            if self._unanswered_since is None:
                self._unanswered_since = now
            elif now - self._unanswered_since >= expiry:
                self.link.drop("heartbeat_timeout")
                return
            self._beat_now.clear()
            self.link.send({"type": "heartbeat", **({} if self.active is None else {"active": self.active})})
            try:
                await asyncio.wait_for(self._beat_now.wait(), min(interval, self._unanswered_since + expiry - now))
            except asyncio.TimeoutError:
                pass

    async def _refresh_tokens(self, skew: float) -> None:
        """Sends a fresh token before the present one expires. If that fails until it expires, the server's close
        leads to a new handshake."""
        attempt = 0
        while self._tokens.expires_at != float("inf"):
            await asyncio.sleep(self._tokens.refresh_wait(skew) if attempt == 0
                                else backoff_delay(attempt - 1, self._random))
            try:
                token = await self._fetch_token()
                await self.requests.request("refresh_token", {"token": token}, early=True)
                attempt = 0
            except Exception as error:  # also of the application's get_token
                attempt += 1
                self._emit("error", error)

    async def _fetch_token(self) -> str:
        """If get_token says that the user is signed out, the client stops."""
        try:
            return await self._tokens.fetch()
        except RollcallError as error:
            if error.code == "UNAUTHENTICATED":
                self._stopping = asyncio.ensure_future(self.link.stop(error))  # not a task of this connection
            raise

    async def _restore_all(self) -> None:
        """Subscribes to and opens again what the application has asked for."""
        if self.presence.subscribed:
            await self._restore(None, lambda: self.request_presences("subscribe_presence", self.presence.subscribed,
                                                                     early=True))
        await self._restore_chats(self.chats.to_restore)
        if self.link.state != "SYNCING":
            return
        self.link.mark_ready()
        self.requests.flush()
        self.outbox.flush()
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _restore_chats(self, chat_ids: list[str]) -> None:
        limit = asyncio.Semaphore(RESTORE_PARALLEL)

        async def restore_one(chat_id: str) -> None:
            async with limit:
                await self._restore_chat(chat_id)

        await asyncio.gather(*(restore_one(chat_id) for chat_id in chat_ids))

    async def _restore_chat(self, chat_id: str) -> None:
        """Two steps, so that a retry repeats only the request that was refused."""
        was_open = self.chats.is_open(chat_id)
        if was_open:
            await self._restore(chat_id, lambda: self.open_chat(chat_id, early=True))
        if not was_open or self.chats.is_open(chat_id):  # it is closed if it was refused for good
            await self._restore(chat_id, lambda: self.chats.sync(chat_id))

    async def _restore(self, chat_id: str | None, work: Callable[[], Awaitable[Any]], attempt: int = 0) -> None:
        """Restores the subscriptions or a part of one chat, and retries after temporary errors. The caller waits while
        the server says RATE_LIMITED; other retries run in the background, so that a part of the server that is down does
        not delay the rest. After a lost connection, the next one restores instead."""
        try:
            await self._pace(work)
        except RollcallError as error:
            if error.code == "DISCONNECTED":
                return
            if not error.retryable or error.code == "RATE_LIMITED" or attempt + 1 >= RESTORE_ATTEMPTS_MAX:
                self._on_restore_failed(chat_id, error)
                return
            self._start(self._restore_later(retry_delay(error, attempt, self._random), chat_id, work, attempt + 1))

    async def _pace(self, work: Callable[[], Awaitable[Any]]) -> None:
        """While the server says RATE_LIMITED, waits as long as it says and tries again. One at a time, so that the chats do
        not compete for what the server allows."""
        try:
            await work()
        except RollcallError as error:
            if error.code != "RATE_LIMITED":
                raise
            async with self._turn:
                await self._retry_limited(error, work)

    async def _retry_limited(self, refusal: RollcallError, work: Callable[[], Awaitable[Any]]) -> None:
        for attempt in range(1, RESTORE_ATTEMPTS_MAX):
            await asyncio.sleep(retry_delay(refusal, attempt - 1, self._random))
            try:
                await work()
                return
            except RollcallError as error:
                if error.code != "RATE_LIMITED":
                    raise
                refusal = error
        raise refusal

    async def _restore_later(self, delay: float, chat_id: str | None, work: Callable[[], Awaitable[Any]],
                             attempt: int) -> None:
        await asyncio.sleep(delay)
        await self._restore(chat_id, work, attempt)

    def _on_restore_failed(self, chat_id: str | None, error: RollcallError) -> None:
        if chat_id is not None and not error.retryable:
            self.chats.close(chat_id)
            self.chats.abandon_gap(chat_id)
        error.chat_id = error.chat_id or chat_id
        self._emit("error", error)

    def _on_gap(self, chat_id: str) -> None:
        self._start(self._restore(chat_id, lambda: self.chats.sync(chat_id)))

    async def _fetch_page(self, chat_id: str, after_sequence: int) -> MessagePage:
        fields = {"chat_id": chat_id, "after_sequence": after_sequence}
        return cast(MessagePage, await self.requests.request("sync_request", fields, early=True))

    # Messages from the server

    def on_message(self, message: ServerMessage) -> None:
        self._unanswered_since = None
        self._apply(message)
        if "id" in message and self.requests.settle(message):
            return
        type_ = message["type"]
        if type_ == "error":
            self._emit("error", RollcallError.from_message(message))
        elif type_ == "typing_changed":
            self._emit("typing", message)
        elif type_ not in ("heartbeat_ack", "message", "presence_changed", "ok"):
            self._emit(type_, message)

    def _apply(self, message: ServerMessage) -> None:
        """Updates the caches, whether the message is a reply or a push."""
        type_ = message["type"]
        if type_ == "presence_changed":
            self._apply_presence(message)
        elif type_ in ("presence_snapshot", "chat_snapshot"):
            for presence in message.get("presences") or []:
                self._apply_presence(presence)
            if type_ == "chat_snapshot":
                self._emit("chat", message)
                self._expect_latest(message)
        elif type_ == "message":
            self.chats.offer(cast(Message, message))
        elif type_ == "chat_closed":
            self.chats.close(message["chat_id"])
        elif type_ == "message_deleted":
            self.chats.on_deleted(message["chat_id"], message["sequence"])
        elif type_ == "connection_closing":
            self.chats.mark_missed(message.get("sync_from_sequence") or {})
        elif type_ == "sync_required":
            self._start(self._restore_chats(self.chats.tracked))

    def _expect_latest(self, snapshot: ServerMessage) -> None:
        """A snapshot that nobody asked for shows messages that this device has not got."""
        if "id" not in snapshot:
            self.chats.expect(snapshot["chat_id"], snapshot["latest_sequence"])

    def _apply_presence(self, presence: dict[str, Any]) -> None:
        shown = cast(Presence, {name: value for name, value in presence.items() if name not in ("type", "id")})
        if self.presence.apply(shown):
            self._emit("presence", shown)

    async def _send_entry(self, entry: Entry) -> MessageAck:
        """The server does not push a message back to its sender, so the acknowledgement takes its place, unless the
        id was used before with another body."""
        fields = {"chat_id": entry.chat_id, "client_message_id": entry.client_message_id, "body": entry.body}
        ack = cast(MessageAck, await self.requests.request("send_message", fields))
        if ack.get("body_differs"):
            self.chats.expect(entry.chat_id, ack["sequence"])
            return ack
        self.chats.offer({
            "chat_id": entry.chat_id, "message_id": ack["message_id"], "client_message_id": entry.client_message_id,
            "sequence": ack["sequence"], "sender_id": self.user_id, "body": entry.body,
            "sent_at": datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")})
        return ack


def _clock_skew(server_time: Any) -> float:
    """The server's clock minus ours, in seconds."""
    try:
        return datetime.fromisoformat(str(server_time).replace("Z", "+00:00")).timestamp() - time.time()
    except ValueError:
        return 0.0
