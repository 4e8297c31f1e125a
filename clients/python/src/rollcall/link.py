"""The connection that is replaced when it is lost: one WebSocket at a time.

  DISCONNECTED ──start()──► CONNECTING ──connection_established──► SYNCING ──mark_ready()──► READY
                                │ failed                              │ connection_closing     │
  BACKOFF ◄─────────────────────┴──────── lost ◄──────────────────── CLOSING ◄────────────────┘
     └── the delay is over, or hurry() ──► CONNECTING
  any ── stop(), or the server does not allow reconnecting ──► DISCONNECTED with `final`

The delays start at 1 s again after READY has lasted for a while, so that the client does not connect every second to a
server that accepts connections and closes them. A refused token (401, 4001, `token_expired`) is replaced once per outage;
if the fresh one is refused too, the client stops.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from dataclasses import dataclass
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from .backoff import RECONNECT_AFTER_MAX_SECONDS, Random, backoff_delay
from .errors import RollcallError
from .http_api import http_error
from .tokens import TokenSource
from .types import ServerMessage, State, StateChange

HANDSHAKE_TIMEOUT_SECONDS = 10.0
"""From the start of a handshake to `connection_established`."""

CLOSING_TIMEOUT_SECONDS = 60.0
"""A draining server closes its connections one by one; the client does not wait longer than this."""

STABLE_AFTER_SECONDS = 10.0
"""After this time in READY the back-off starts at 1 s again."""

CLOSE_TIMEOUT_SECONDS = 2.0
MESSAGE_BYTES_MAX = 1 << 24
CLOSE_TOO_LARGE = 1009
CLOSE_TOKEN = 4001

log = logging.getLogger("rollcall")


class LinkEvents(Protocol):
    """What the link tells its owner. After on_state() with `final` there is no other attempt."""

    def on_state(self, change: StateChange) -> None: ...
    def on_established(self, message: ServerMessage) -> None: ...
    def on_message(self, message: ServerMessage) -> None: ...
    def on_error(self, error: Exception) -> None: ...
    def on_too_large(self) -> None: ...


@dataclass
class _End:
    """How a connection or an attempt ended."""

    reason: str
    code: int | None = None
    refused: bool = False
    retry_after: float | None = None


class Link:
    def __init__(self, url: str, tokens: TokenSource, random: Random, events: LinkEvents,
                 ssl_context: ssl.SSLContext | None) -> None:
        self.state: State = "DISCONNECTED"
        self._url = url
        self._tokens = tokens
        self._random = random
        self._events = events
        self._ssl_options: dict[str, Any] = {} if ssl_context is None else {"ssl": ssl_context}
        self._task: asyncio.Task[None] | None = None
        self._socket: ClientConnection | None = None
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._hurry = asyncio.Event()
        self._dropped: asyncio.Future[str] | None = None
        self._closing: ServerMessage | None = None
        self._closing_since = 0.0
        self._attempts = 0
        self._token_replaced = False
        self._ready_since: float | None = None

    def start(self) -> None:
        """Connects, or ends a back-off early. Does nothing if there is a connection or an attempt."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        self._hurry.set()

    async def stop(self, error: RollcallError) -> None:
        """Disconnects until start() is called again. Whoever waits for READY gets `error`."""
        task, self._task = self._task, None
        if task is None:
            return
        socket = self._socket
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if socket is not None:
            await socket.close()
        self._finish(error)

    def drop(self, reason: str) -> None:
        """Ends the connection because it is dead."""
        if self._dropped is not None and not self._dropped.done():
            self._dropped.set_result(reason)

    def mark_ready(self) -> None:
        self._token_replaced = False
        self._ready_since = time.monotonic()
        self._set_state("READY")

    def send(self, frame: dict[str, Any]) -> bool:
        """Queues a frame in order; returns False if there is no connection."""
        if self._socket is None:
            return False
        self._outgoing.put_nowait(json.dumps(frame, ensure_ascii=False, separators=(",", ":")))
        return True

    def _set_state(self, state: State, **detail: Any) -> None:
        """Every change of state goes through here."""
        change: StateChange = {"state": state, "previous": self.state}
        change.update({name: value for name, value in detail.items() if value is not None})  # type: ignore[typeddict-item]
        self.state = state
        self._events.on_state(change)

    def _finish(self, error: RollcallError) -> None:
        self._task = None
        self._attempts = 0
        self._token_replaced = False
        self._set_state("DISCONNECTED", final=True, reason=error.code, error=error)

    async def _run(self) -> None:
        while True:
            self._set_state("CONNECTING")
            try:
                end = await self._attempt()
            except RollcallError as error:  # get_token refused, so no other attempt can succeed
                self._finish(error)
                return
            final = self._final_error(end)
            if end.code == CLOSE_TOO_LARGE:
                self._events.on_too_large()
            if final is not None:
                self._finish(final)
                return
            await self._back_off(end)

    async def _attempt(self) -> _End:
        """One connection, from its handshake to its end."""
        self._closing = None
        self._ready_since = None
        self._dropped = asyncio.get_running_loop().create_future()
        try:
            token = await asyncio.wait_for(self._tokens.current(), HANDSHAKE_TIMEOUT_SECONDS)
        except RollcallError as error:
            if error.code == "UNAUTHENTICATED":
                raise
            self._events.on_error(error)
            return _End("no_token")
        except Exception as error:  # of the application's get_token
            self._events.on_error(error)
            return _End("no_token")
        return await self._connect(token)

    async def _connect(self, token: str) -> _End:
        try:
            socket = await connect(
                self._url, subprotocols=[Subprotocol("rollcall.v1")], additional_headers={"Authorization": f"Bearer {token}"},
                compression=None, open_timeout=HANDSHAKE_TIMEOUT_SECONDS, close_timeout=CLOSE_TIMEOUT_SECONDS,
                ping_interval=None, max_size=MESSAGE_BYTES_MAX, **self._ssl_options)
        except InvalidStatus as refusal:
            status = refusal.response.status_code
            error = http_error(status, None, refusal.response.headers.get("Retry-After"))
            return _End(f"HTTP {status}", refused=status == 401, retry_after=error.retry_after_seconds)
        except (OSError, TimeoutError, asyncio.TimeoutError, WebSocketException) as error:
            return _End(str(error) or "handshake_timeout")
        try:
            self._socket = socket
            self._outgoing = asyncio.Queue()
            return await self._serve(socket)
        finally:
            self._socket = None

    async def _serve(self, socket: ClientConnection) -> _End:
        assert self._dropped is not None
        reader = asyncio.ensure_future(self._read(socket))
        writer = asyncio.ensure_future(self._write(socket))
        ends: list[asyncio.Future[Any]] = [reader, self._dropped]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)
        if not reader.cancelled() and reader.exception() is not None:
            log.error("a message could not be handled", exc_info=reader.exception())
            self.drop("invalid_message")
        if self._dropped.done():
            socket.transport.abort()  # a dead server would not answer a close frame
            return _End(self._dropped.result())
        return _End(socket.protocol.close_reason or "connection_lost", code=socket.protocol.close_code)

    async def _write(self, socket: ClientConnection) -> None:
        try:
            while True:
                await socket.send(await self._outgoing.get())
        except ConnectionClosed:
            pass  # the reader reports it

    async def _read(self, socket: ClientConnection) -> None:
        handshake = asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT_SECONDS, self.drop, "handshake_timeout")
        try:
            async for text in socket:
                message = _parse(text)
                if message is None:
                    self._events.on_error(RollcallError("INVALID_MESSAGE", "the server sent data that is not a message"))
                elif message["type"] == "connection_established" and self.state == "CONNECTING":
                    handshake.cancel()
                    self._set_state("SYNCING")
                    self._events.on_established(message)
                else:
                    if message["type"] == "connection_closing":
                        self._on_closing(message)
                    self._events.on_message(message)
        except ConnectionClosed:
            pass  # the close code tells
        finally:
            handshake.cancel()

    def _on_closing(self, message: ServerMessage) -> None:
        self._closing = message
        self._closing_since = time.monotonic()
        if self.state in ("SYNCING", "READY"):
            asyncio.get_running_loop().call_later(CLOSING_TIMEOUT_SECONDS, self._drop_closing, self._dropped)
            self._set_state("CLOSING", reason=message.get("reason"))

    def _drop_closing(self, dropped: asyncio.Future[str] | None) -> None:
        """A later connection has another future."""
        if dropped is self._dropped:
            self.drop("closing_timeout")

    def _final_error(self, end: _End) -> RollcallError | None:
        """Why the client must stop, or None. Replaces the token where that may help."""
        closing = self._closing or {}
        if end.refused or end.code == CLOSE_TOKEN or closing.get("reason") == "token_expired":
            if self._token_replaced or not self._tokens.discard():
                return RollcallError("UNAUTHENTICATED", "the server refused the token")
            self._token_replaced = True
        elif closing.get("reconnect_allowed") is False:
            return RollcallError("CLOSED", f"the server closed the connection for good: {closing.get('reason')}")
        return None

    async def _back_off(self, end: _End) -> None:
        if self._ready_since is not None and time.monotonic() - self._ready_since > STABLE_AFTER_SECONDS:
            self._attempts = 0
        delay = self._delay(end)
        self._hurry.clear()
        reason = (self._closing or {}).get("reason", end.reason)
        self._set_state("BACKOFF", delay_seconds=delay, code=end.code, reason=reason)
        try:
            await asyncio.wait_for(self._hurry.wait(), delay)
        except asyncio.TimeoutError:
            pass

    def _delay(self, end: _End) -> float:
        """`reconnect_after_ms` includes the time until the server closed."""
        asked = (self._closing or {}).get("reconnect_after_ms")
        if isinstance(asked, (int, float)) and asked >= 0:
            return max(0.0, min(asked / 1000, RECONNECT_AFTER_MAX_SECONDS) - (time.monotonic() - self._closing_since))
        if end.refused and self._attempts == 0:
            self._attempts += 1
            return 0.0  # with the fresh token at once
        delay = backoff_delay(self._attempts, self._random)
        self._attempts += 1
        return max(delay, min(end.retry_after or 0.0, RECONNECT_AFTER_MAX_SECONDS))


def _parse(text: str | bytes) -> ServerMessage | None:
    try:
        message = json.loads(text)
    except ValueError:
        return None
    return message if isinstance(message, dict) and isinstance(message.get("type"), str) else None
