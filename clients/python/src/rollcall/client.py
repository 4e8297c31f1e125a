"""Rollcall's client for asyncio: presence, chats and calls over one connection that reconnects by itself.

    async with Client("https://rollcall.example.org", get_token=fetch_token) as client:
        client.on("presence", lambda presence: print(presence["user_id"], presence["status"]))
        await client.subscribe_presence(["alice", "bob"])
        await client.send_message("team", "good morning")

The application subscribes to users, opens chats and sends messages once. The client restores and repeats them after
lost connections (link.py has the states), until close(). All of it belongs to one event loop; it is not thread-safe.

  session.py     the life of a connection, and restoring its state
  link.py        one socket at a time, back-off, tokens at the handshake
  requests.py    requests and their replies   outbox.py   messages until acknowledged
  presence.py    cached presences             chats.py    every message once, in order
  tokens.py      tokens and their renewal     people.py   contacts, chats and settings over HTTP
"""

from __future__ import annotations

import logging
import random as random_module
import ssl
import uuid
from typing import Any, Callable, Iterable, Literal, Mapping, overload
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from .backoff import Random
from .http_api import HttpApi
from .people import People
from .requests import REQUEST_TIMEOUT_SECONDS
from .session import Session
from .tokens import GetToken, TokenSource
from .types import ChatSnapshot, Message, MessageAck, MessagePage, Presence, ServerMessage, State, StateChange

log = logging.getLogger("rollcall")

Listener = Callable[[Any], None]


class Client(People):
    def __init__(self, url: str, *, token: str | None = None, get_token: GetToken | None = None,
                 device_id: str | None = None, ssl_context: ssl.SSLContext | None = None,
                 random: Random = random_module.random) -> None:
        """`get_token` (a function or a coroutine function) returns a fresh token. If it raises a RollcallError with
        code UNAUTHENTICATED, the client stops; any other error is retried."""
        self.device_id = device_id or uuid.uuid4().hex
        self._listeners: dict[str, list[Listener]] = {}
        self._tokens = TokenSource(token, get_token)
        self._session = Session(_endpoint(url, self.device_id), self._tokens, random, self._emit, ssl_context)
        super().__init__(HttpApi(url, ssl_context=ssl_context), self._tokens)

    async def __aenter__(self) -> Client:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Connection

    @property
    def state(self) -> State:
        return self._session.link.state

    @property
    def user_id(self) -> str | None:
        """The user of the token, as the server reports it; None before the first connection."""
        return self._session.user_id

    @property
    def connection_id(self) -> str | None:
        return self._session.connection_id

    async def connect(self) -> None:
        """Waits for the next READY. During a back-off it reconnects at once."""
        await self._session.connect()

    async def close(self) -> None:
        """Disconnects. Pending requests and messages fail with CLOSED."""
        await self._session.close()

    @overload
    def on(self, event: Literal["state"], listener: Callable[[StateChange], None]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["presence"], listener: Callable[[Presence], None]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["message"], listener: Callable[[Message], None]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["chat"], listener: Callable[[ChatSnapshot], None]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["error"], listener: Callable[[Exception], None]) -> Callable[[], None]: ...
    @overload
    def on(self, event: str, listener: Callable[[ServerMessage], None]) -> Callable[[], None]: ...

    def on(self, event: str, listener: Listener) -> Callable[[], None]:
        """Calls the listener for each event: `state`, `presence`, `message`, `chat`, `typing`, `error`, and every
        other push of the server under its own name. Returns a function that removes it."""
        listeners = self._listeners.setdefault(event, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def set_active(self, active: bool | None) -> None:
        """Whether the user is active on this device; sent at once. None (the default) says nothing about the user."""
        self._session.set_active(active)

    async def refresh_token(self, token: str | None = None) -> None:
        """Sends a new token over the open connection; without an argument, get_token returns it."""
        fresh = token if token is not None else await self._tokens.fetch()
        await self.request("refresh_token", {"token": fresh}, idempotent=True)
        self._tokens.replace(fresh)

    async def request(self, type_: str, fields: Mapping[str, Any] | None = None, *,
                      timeout: float = REQUEST_TIMEOUT_SECONDS, idempotent: bool = False) -> ServerMessage:
        """Sends any command of the protocol and waits for its reply."""
        return await self._session.requests.request(type_, fields or {}, timeout=timeout, idempotent=idempotent)

    # Presence

    def presence(self, user_id: str) -> Presence | None:
        """The last known presence of a user."""
        return self._session.presence.get(user_id)

    async def subscribe_presence(self, user_ids: Iterable[str]) -> list[Presence]:
        """Subscribes until unsubscribe_presence(), also after reconnects. Returns their presences."""
        wanted = list(user_ids)
        added = self._session.presence.subscribe(wanted)
        try:
            return await self._session.request_presences("subscribe_presence", wanted)
        except Exception as error:
            if not getattr(error, "retryable", False):
                self._session.presence.unsubscribe(added)
            raise

    async def unsubscribe_presence(self, user_ids: Iterable[str]) -> None:
        unwanted = list(user_ids)
        self._session.presence.unsubscribe(unwanted)
        await self.request("unsubscribe_presence", {"user_ids": unwanted}, idempotent=True)

    async def query_presence(self, user_ids: Iterable[str]) -> list[Presence]:
        return await self._session.request_presences("query_presence", user_ids)

    # Chats

    async def open_chat(self, chat_id: str, *, after_sequence: int | None = None) -> ChatSnapshot:
        """Opens a chat until close_chat(), also after reconnects. Its messages arrive as `message` events, those
        after `after_sequence`, else those from now on."""
        self._session.chats.open(chat_id, after_sequence)
        try:
            return await self._session.open_chat(chat_id)
        except Exception as error:
            if not getattr(error, "retryable", False):
                self._session.chats.close(chat_id)
            raise

    async def close_chat(self, chat_id: str) -> None:
        self._session.chats.close(chat_id)
        await self.request("close_chat", {"chat_id": chat_id}, idempotent=True)

    def typing(self, chat_id: str, typing: bool = True) -> bool:
        """Reports that the user types or has stopped. Returns False if not connected; it is not kept."""
        return self.state == "READY" and self._session.link.send(
            {"type": "typing_start" if typing else "typing_stop", "chat_id": chat_id})

    async def send_message(self, chat_id: str, body: str, *, client_message_id: str | None = None) -> MessageAck:
        """Returns the acknowledgement; repeats the message over as many connections as needed."""
        return await self._session.outbox.add(chat_id, client_message_id or uuid.uuid4().hex, body)

    async def sync(self, chat_id: str) -> int:
        """Fetches missed messages of a chat as `message` events. Returns the last sequence."""
        return await self._session.chats.sync(chat_id)

    async def fetch_messages(self, chat_id: str, after_sequence: int, limit: int | None = None) -> MessagePage:
        """One page of a chat's messages; there are no events for it."""
        reply = await self.request("sync_request", {"chat_id": chat_id, "after_sequence": after_sequence, "limit": limit},
                                   idempotent=True)
        return {"messages": reply["messages"], "has_more": reply["has_more"], "latest_sequence": reply["latest_sequence"]}

    def ack(self, chat_id: str, sequence: int) -> bool:
        """Moves the user's read mark: others who have the chat open get a `receipt`. Returns False if not connected."""
        return self._session.link.send({"type": "ack", "chat_id": chat_id, "sequence": sequence})

    async def send_event(self, name: str, data: Any = None) -> Any:
        """Sends an event of the application to its server; returns the data of the acknowledgement."""
        return (await self.request("event", {"name": name, "data": data}))["data"]

    # Calls

    async def request_call(self, to: str, *, call_id: str | None = None) -> str:
        """Rings a contact; returns the call's id."""
        return str((await self.request("call_request", {"to": to, "call_id": call_id}))["call_id"])

    async def accept_call(self, call_id: str) -> None:
        await self.request("call_accept", {"call_id": call_id})

    async def reject_call(self, call_id: str) -> None:
        await self.request("call_reject", {"call_id": call_id})

    async def end_call(self, call_id: str) -> None:
        await self.request("call_end", {"call_id": call_id})

    def signal(self, call_id: str, data: Any) -> bool:
        """Sends an offer, an answer or a candidate to the other side. Returns False if not connected."""
        return self._session.link.send({"type": "call_signal", "call_id": call_id, "data": data})

    def _emit(self, event: str, payload: Any) -> None:
        for listener in list(self._listeners.get(event, ())):
            try:
                listener(payload)
            except Exception:
                log.exception("a listener of '%s' failed", event)


def _endpoint(url: str, device_id: str) -> str:
    """Accepts http or ws, with or without a path."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss"):
        raise ValueError(f"not a WebSocket address: {url}")
    query = urlencode([*parse_qsl(parts.query), ("device_id", device_id)])
    return urlunsplit((scheme, parts.netloc, "/v1/ws" if parts.path in ("", "/") else parts.path, query, ""))
