"""Messages that the server has not acknowledged yet.

A message leaves the outbox when the server has acknowledged it or refused it for good. Until then it is sent again, with
the same `client_message_id`, after a lost connection, a missing reply and every temporary error; the server recognises
the repetition. One message per chat is in flight, so that the next message cannot overtake a retry.

The server limits a user's messages in all chats together. After RATE_LIMITED the chats take turns, one message at a
time, each after the time that the server names. Such a refusal does not count as a failed attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from typing import AsyncIterator, Awaitable, Callable

from .backoff import Random, retry_delay
from .errors import RollcallError
from .types import MessageAck

OUTBOX_MAX = 100
"""Unacknowledged messages in all chats together. Beyond it: QUEUE_FULL."""

SEND_ATTEMPTS_MAX = 10
"""Attempts before a message fails; lost connections do not count."""


@dataclass
class Entry:
    chat_id: str
    client_message_id: str
    body: str
    ack: asyncio.Future[MessageAck]
    attempts: int = 0


class Outbox:
    def __init__(self, send: Callable[[Entry], Awaitable[MessageAck]], is_open: Callable[[], bool],
                 random: Random) -> None:
        self._send = send
        self._is_open = is_open
        self._random = random
        self._queues: dict[str, deque[Entry]] = {}
        self._drains: dict[str, asyncio.Task[None]] = {}
        self._limited = False
        self._turns = asyncio.Lock()
        self._waiting = 0

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, chat_id: str, client_message_id: str, body: str) -> asyncio.Future[MessageAck]:
        """Queues a message at once, in the order of the calls; the future has its acknowledgement."""
        if len(self) >= OUTBOX_MAX:
            raise RollcallError("QUEUE_FULL", f"{OUTBOX_MAX} messages are unacknowledged",
                                client_message_id=client_message_id)
        entry = Entry(chat_id, client_message_id, body, asyncio.get_running_loop().create_future())
        self._queues.setdefault(chat_id, deque()).append(entry)
        self._start(chat_id)
        return entry.ack

    def flush(self) -> None:
        """Resumes after a reconnect."""
        for chat_id in list(self._queues):
            self._start(chat_id)

    def fail_all(self, error: RollcallError) -> None:
        entries = [entry for queue in self._queues.values() for entry in queue]
        self._queues.clear()
        for drain in self._drains.values():
            drain.cancel()
        self._drains.clear()
        self._limited = False
        for entry in entries:
            if not entry.ack.done():
                entry.ack.set_exception(error)
                entry.ack.exception()  # a sender that no longer waits does not read it

    def _start(self, chat_id: str) -> None:
        if chat_id not in self._drains and self._is_open():
            self._drains[chat_id] = asyncio.ensure_future(self._drain(chat_id))

    async def _drain(self, chat_id: str) -> None:
        queue = self._queues[chat_id]
        while queue and self._is_open():
            async with self._turn():
                await self._attempt(queue)
        if self._queues.get(chat_id) is queue:
            del self._drains[chat_id]
            if not queue:
                del self._queues[chat_id]

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """While the server limits the user, waits until all that came before have ended."""
        if not self._limited:
            yield
            return
        self._waiting += 1
        try:
            async with self._turns:
                yield
        finally:
            self._waiting -= 1
            self._limited = self._limited and self._waiting > 0

    async def _attempt(self, queue: deque[Entry]) -> None:
        if not self._is_open():  # the connection was lost while others had their turns
            return
        entry = queue[0]
        try:
            ack = await self._send(entry)
            queue.popleft()
            if not entry.ack.done():
                entry.ack.set_result(ack)
        except RollcallError as error:
            if error.code != "DISCONNECTED":
                await self._on_refused(queue, entry, error)

    async def _on_refused(self, queue: deque[Entry], entry: Entry, error: RollcallError) -> None:
        if error.code == "RATE_LIMITED" and error.retry_after_seconds:
            self._limited = True
        else:
            entry.attempts += 1
        if error.retryable and entry.attempts < SEND_ATTEMPTS_MAX:
            await asyncio.sleep(retry_delay(error, max(entry.attempts - 1, 0), self._random))
            return
        queue.popleft()
        if not entry.ack.done():
            entry.ack.set_exception(error)
            entry.ack.exception()  # a sender that no longer waits does not read it
