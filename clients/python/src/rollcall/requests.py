"""Requests and their replies, matched by `id`.

Every request is settled exactly once: by the reply, by the server's `error`, or with one of the client's own codes.
Without a connection a request waits for the next one within its time limit. If the connection is lost before the reply,
an idempotent request is sent again on the next one; any other fails with DISCONNECTED, because the client cannot know
whether it took effect.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from .errors import RollcallError
from .types import ServerMessage

PENDING_REQUESTS_MAX = 100
"""Waiting and sent ones together. The server allows as many in flight. Beyond it: QUEUE_FULL."""

REQUEST_TIMEOUT_SECONDS = 10.0


@dataclass
class _Entry:
    frame: dict[str, Any]
    reply: asyncio.Future[ServerMessage]
    idempotent: bool
    early: bool
    sent: bool = False


class Requests:
    def __init__(self, send: Callable[[dict[str, Any]], object], is_open: Callable[[bool], bool]) -> None:
        """`is_open(early)` returns whether `send(frame)` is possible now; with `early`, before READY too, when only
        the requests that restore the connection are sent."""
        self._send = send
        self._is_open = is_open
        self._pending: dict[str, _Entry] = {}
        self._last_id = 0

    async def request(self, type_: str, fields: Mapping[str, Any], *, timeout: float = REQUEST_TIMEOUT_SECONDS,
                      idempotent: bool = False, early: bool = False) -> ServerMessage:
        """`early`: the request restores the present connection, so it is sent before READY and fails with it."""
        if len(self._pending) >= PENDING_REQUESTS_MAX:
            raise RollcallError("QUEUE_FULL", f"{PENDING_REQUESTS_MAX} requests are waiting")
        if early and not self._is_open(True):
            raise RollcallError("DISCONNECTED", "there is no connection")
        self._last_id += 1
        frame = {**{name: value for name, value in fields.items() if value is not None},
                 "type": type_, "id": str(self._last_id)}
        entry = _Entry(frame, asyncio.get_running_loop().create_future(), idempotent, early)
        self._pending[frame["id"]] = entry
        try:
            self._send_if_open(entry)
            return await asyncio.wait_for(entry.reply, timeout)
        except asyncio.TimeoutError:
            raise RollcallError("TIMEOUT", f"no reply to {type_} within {timeout} s") from None
        finally:
            self._pending.pop(frame["id"], None)

    def flush(self) -> None:
        """Sends the requests that waited for a connection."""
        for entry in list(self._pending.values()):
            if not entry.sent:
                self._send_if_open(entry)

    def settle(self, message: ServerMessage) -> bool:
        """Settles the request that a message answers; returns False if there is none."""
        entry = self._pending.pop(str(message.get("id")), None)
        if entry is None:
            return False
        if message["type"] == "error":
            self._fail(entry, RollcallError.from_message(message))
        elif not entry.reply.done():
            entry.reply.set_result(message)
        return True

    def too_large(self) -> None:
        """The server closed the connection because of the size of a frame: it is the largest one, as the server
        accepted all others. Sending it again is no use."""
        sent = [entry for entry in self._pending.values() if entry.sent]
        if sent:
            largest = max(sent, key=lambda entry: len(str(entry.frame)))
            self._fail(largest, RollcallError("MESSAGE_TOO_LARGE", "larger than the server accepts"))

    def connection_lost(self) -> None:
        for entry in list(self._pending.values()):
            if entry.idempotent and not entry.early:
                entry.sent = False
            elif entry.sent:
                self._fail(entry, RollcallError("DISCONNECTED", "the connection was lost before the reply"))

    def fail_all(self, error: RollcallError) -> None:
        for entry in list(self._pending.values()):
            self._fail(entry, error)

    def _send_if_open(self, entry: _Entry) -> None:
        if self._is_open(entry.early):
            entry.sent = True
            self._send(entry.frame)

    @staticmethod
    def _fail(entry: _Entry, error: RollcallError) -> None:
        if not entry.reply.done():
            entry.reply.set_exception(error)
