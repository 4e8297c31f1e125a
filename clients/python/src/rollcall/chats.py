"""Delivers every message once, and in order within its chat.

Sequences are dense per chat, so a gap means a missed message: later messages are held until a sync has filled the gap.
After a reconnect, the sync starts at the last delivered sequence. A chat that was neither opened nor synced starts with
its first message that arrives.

  offer(n)   n <= last: dropped as a duplicate      n == last + 1: delivered
             n >  last + 1: held, `on_gap` requests a sync
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Mapping

from .errors import RollcallError
from .types import Message, MessagePage

TRACKED_CHATS_MAX = 1000
"""Chats tracked. Beyond it, the oldest one that is not open is dropped."""

HELD_MESSAGES_MAX = 500
"""Messages held per chat behind a gap. Beyond it they are dropped: the sync fetches them again."""


@dataclass
class _Log:
    last: int | None = None
    held: dict[int, Message] = field(default_factory=dict)
    open: bool = False
    missed: bool = False
    syncing: asyncio.Future[int] | None = None


class Chats:
    def __init__(self, fetch_page: Callable[[str, int], Awaitable[MessagePage]], deliver: Callable[[Message], None],
                 on_gap: Callable[[str], None]) -> None:
        """`on_gap(chat_id)` must make sure that sync(chat_id) is called."""
        self._logs: dict[str, _Log] = {}
        self._fetch_page = fetch_page
        self._deliver = deliver
        self._on_gap = on_gap

    def open(self, chat_id: str, after_sequence: int | None) -> None:
        """Marks a chat as open. Until begin() sets where it starts, its messages are held."""
        log = self._log(chat_id)
        log.open = True
        if after_sequence is not None:
            log.last = after_sequence

    def begin(self, chat_id: str, latest_sequence: int) -> None:
        """A chat opened for the first time without `after_sequence` starts at the server's latest one."""
        log = self._log(chat_id)
        if log.last is None:
            log.last = min([latest_sequence, *(sequence - 1 for sequence in log.held)])
        self._release(log)

    def close(self, chat_id: str) -> None:
        if chat_id in self._logs:
            self._logs[chat_id].open = False

    def is_open(self, chat_id: str) -> bool:
        return chat_id in self._logs and self._logs[chat_id].open

    def last_sequence(self, chat_id: str) -> int | None:
        return self._logs[chat_id].last if chat_id in self._logs else None

    @property
    def to_restore(self) -> list[str]:
        """The chats a new connection must restore: open ones, and those with a gap."""
        return [chat_id for chat_id, log in self._logs.items() if log.open or log.held or log.missed]

    @property
    def tracked(self) -> list[str]:
        return [chat_id for chat_id, log in self._logs.items() if log.open or log.last is not None]

    def mark_missed(self, sync_after: Mapping[str, Any]) -> None:
        """Takes `sync_from_sequence` of a closing connection: chats whose messages the server dropped."""
        for chat_id, sequence in sync_after.items():
            log = self._log(chat_id)
            log.missed = True
            if log.last is None and isinstance(sequence, int):
                log.last = max(sequence, 0)

    def offer(self, message: Message) -> None:
        chat_id, sequence = message["chat_id"], message["sequence"]
        log = self._log(chat_id)
        if log.last is None and not log.open:
            log.last = sequence - 1
        if log.last is not None and sequence <= log.last:
            return
        if len(log.held) < HELD_MESSAGES_MAX or (log.last is not None and sequence == log.last + 1):
            log.held[sequence] = message
        if log.last is None:
            return
        self._release(log)
        if log.held and log.syncing is None:
            self._on_gap(chat_id)

    def on_deleted(self, chat_id: str, sequence: int) -> None:
        """A message was deleted: if it is held behind a gap, it is delivered without its body."""
        held = self._logs[chat_id].held if chat_id in self._logs else {}
        if sequence in held:
            message = held[sequence].copy()
            message.pop("body", None)
            message["deleted"] = True
            held[sequence] = message

    def expect(self, chat_id: str, sequence: int) -> None:
        """The server has a message with this sequence that only a sync can fetch."""
        log = self._log(chat_id)
        if log.last is None and not log.open:
            log.last = sequence - 1
        if log.last is None or sequence <= log.last:
            return
        log.missed = True
        if log.syncing is None:
            self._on_gap(chat_id)

    async def sync(self, chat_id: str) -> int:
        """Fetches pages until the server has no more. One sync per chat runs at a time."""
        log = self._log(chat_id)
        if log.syncing is None:
            log.syncing = asyncio.ensure_future(self._catch_up(chat_id, log))
            log.syncing.add_done_callback(lambda done: self._on_synced(log, done))
        return await asyncio.shield(log.syncing)

    def abandon_gap(self, chat_id: str) -> None:
        """Skips the gap of a chat whose sync was refused for good."""
        log = self._logs.get(chat_id)
        if log is None:
            return
        log.missed = False
        if log.held:
            log.last = min(log.held) - 1
            self._release(log)

    @staticmethod
    def _on_synced(log: _Log, done: asyncio.Future[int]) -> None:
        log.syncing = None
        if not done.cancelled():
            done.exception()  # read once, because a caller that was cancelled does not

    async def _catch_up(self, chat_id: str, log: _Log) -> int:
        if log.last is None:
            log.last = 0
        while True:
            before = log.last
            page = await self._fetch_page(chat_id, before)
            for message in page["messages"]:
                self.offer(message)
            stuck = log.last == before
            if page["has_more"]:
                if stuck:
                    raise RollcallError("INVALID_MESSAGE", "the sync does not advance", chat_id=chat_id)
                continue
            self._skip_to(log, page["latest_sequence"])
            if not log.held:
                break
            if log.last == before:
                raise RollcallError("SERVICE_UNAVAILABLE", "the sync lags behind", chat_id=chat_id)
        log.missed = False
        return log.last

    def _skip_to(self, log: _Log, latest_sequence: int) -> None:
        """If a complete sync left a gap below `latest_sequence`, there are no messages in the gap."""
        if log.held and min(log.held) <= latest_sequence + 1:
            log.last = min(log.held) - 1
            self._release(log)

    def _release(self, log: _Log) -> None:
        assert log.last is not None
        for sequence in [held for held in log.held if held <= log.last]:
            del log.held[sequence]
        while log.last + 1 in log.held:
            message = log.held.pop(log.last + 1)
            log.last += 1
            self._deliver(message)

    def _log(self, chat_id: str) -> _Log:
        log = self._logs.get(chat_id)
        if log is None:
            log = self._logs[chat_id] = _Log()
            self._drop_surplus()
        return log

    def _drop_surplus(self) -> None:
        if len(self._logs) > TRACKED_CHATS_MAX:
            surplus = next((chat_id for chat_id, log in self._logs.items()
                            if not log.open and log.syncing is None and log.last is not None), None)
            if surplus is not None:
                del self._logs[surplus]
