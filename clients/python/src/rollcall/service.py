"""The service API, for an application's backend: synchronous, standard library only.

    service = Service("https://rollcall.example.org", key=os.environ["ROLLCALL_KEY"])
    service.deliver({"notice": "Your order has shipped."}, users=["alice"])

It acts for the application, without privacy or consent, so every call names whom it acts for. The key (`rk_…`, from
`rollcall key create`, or a token with the scope `service`) belongs in the backend and never in an app.

Errors are RollcallError with `code`, `status` and `retryable`. Calls that may be repeated without harm (all but
deliver(), and send_message() with its client_message_id) are repeated by the caller, who knows how long it can wait.
A Service keeps no connection and no state, so any number of threads may share one.
"""

from __future__ import annotations

import json
import ssl
from typing import Any, Iterable, Iterator, Mapping, Sequence, TypedDict

from .errors import RollcallError
from .http_api import HTTP_TIMEOUT_SECONDS, HttpApi, path
from .types import Chat, MessageAck, Presence

__all__ = ["ImportResult", "RollcallError", "Service"]

ONLINE_PAGE = 1000
IMPORT_TIMEOUT_SECONDS = 3600.0
IMPORT_CHUNK_BYTES = 1 << 16


class ImportFailure(TypedDict):
    line: int
    message: str


class ImportResult(TypedDict):
    contacts: int
    blocks: int
    users: int
    chats: int
    errors: list[ImportFailure]


class Service:
    def __init__(self, url: str, key: str, *, timeout: float = HTTP_TIMEOUT_SECONDS,
                 ssl_context: ssl.SSLContext | None = None) -> None:
        self._key = key
        self._api = HttpApi(url, timeout=timeout, ssl_context=ssl_context)
        self._long_api = HttpApi(url, timeout=max(timeout, IMPORT_TIMEOUT_SECONDS), ssl_context=ssl_context)

    # Delivery

    def deliver(self, data: Any, *, users: Sequence[str] | None = None, chat: str | None = None,
                everyone: bool = False, event: str | None = None) -> int:
        """Sends any JSON to all devices of some users, of a chat's members, or of everyone (exactly one of them).
        Returns how many users with at least one device there are."""
        targets: list[dict[str, Any]] = [{name: value} for name, value in
                                         (("users", users), ("chat", chat), ("everyone", everyone or None))
                                         if value is not None]
        if len(targets) != 1:
            raise TypeError("name exactly one of users, chat and everyone")
        body: dict[str, Any] = {"to": targets[0], "data": data}
        if event is not None:
            body["event"] = event
        return int(self._call("POST", path("service", "deliver"), body)["accepted"])

    # Contacts

    def add_contact(self, user: str, other: str) -> None:
        self._call("PUT", path("service", "contacts", user, other))

    def remove_contact(self, user: str, other: str) -> None:
        self._call("DELETE", path("service", "contacts", user, other))

    def set_contacts(self, user: str, contacts: Iterable[str]) -> Any:
        """Makes this the whole list of a user's contacts."""
        return self._call("PUT", path("service", "users", user, "contacts"), {"contacts": list(contacts)})

    def import_lines(self, lines: Iterable[Mapping[str, Any]]) -> ImportResult:
        """Streams lines such as {"contact": ["a", "b"]}, {"block": […]}, {"user": {…}}, {"chat": {…}}. Importing the
        same lines again changes nothing, so an import that broke off may start again."""
        result: ImportResult = self._long_api.exchange(self._key, "POST", path("service", "import"), _ndjson(lines),
                                                       "application/x-ndjson")
        return result

    # Chats and messages

    def create_chat(self, members: Sequence[str], chat_id: str | None = None, **fields: Any) -> Chat:
        """Creates a group. `fields` are the others of a chat, such as members_can_add."""
        given = {} if chat_id is None else {"chat_id": chat_id}
        chat: Chat = self._call("POST", path("service", "chats"), {**fields, **given, "members": list(members)})
        return chat

    def add_member(self, chat_id: str, user: str) -> None:
        self._call("PUT", path("service", "chats", chat_id, "members", user))

    def remove_member(self, chat_id: str, user: str) -> None:
        self._call("DELETE", path("service", "chats", chat_id, "members", user))

    def send_message(self, chat_id: str, body: str, *, client_message_id: str, sender_id: str | None = None) -> MessageAck:
        """Sends as a user or, without `sender_id`, as the system. The same client_message_id is stored once."""
        fields: dict[str, str] = {"client_message_id": client_message_id, "body": body}
        if sender_id is not None:
            fields["sender_id"] = sender_id
        ack: MessageAck = self._call("POST", path("service", "chats", chat_id, "messages"), fields)
        return ack

    def delete_message(self, chat_id: str, sequence: int) -> None:
        """Leaves a tombstone: the sequence stays, the body goes."""
        self._call("DELETE", path("service", "chats", chat_id, "messages", str(sequence)))

    # Presence

    def presence(self, users: Sequence[str]) -> list[Presence]:
        presences: list[Presence] = self._call("GET", path("service", "presence"),
                                               query={"users": ",".join(users)})["presences"]
        return presences

    def online(self, *, page: int = ONLINE_PAGE) -> Iterator[str]:
        """Yields all users who are online, a page at a time."""
        after = None
        while True:
            answer = self._call("GET", path("service", "online"), query={"after": after, "limit": page})
            yield from answer["users"]
            after = answer["next"]
            if after is None:
                return

    # Users

    def export_user(self, user: str) -> Any:
        """Everything that is stored of a user."""
        return self._long_api.call(self._key, "GET", path("service", "users", user, "export"))

    def erase_user(self, user: str) -> bool:
        """Returns True when the user is erased. False: it takes longer and goes on; ask again."""
        return self._long_api.call(self._key, "DELETE", path("service", "users", user)) is None

    def _call(self, method: str, target: str, body: Any = None, query: Mapping[str, str | int | None] | None = None) -> Any:
        return self._api.call(self._key, method, target, body, query)


def _ndjson(lines: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Joins lines to chunks of a good size for the network."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        text = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        chunk.append(text)
        size += len(text)
        if size >= IMPORT_CHUNK_BYTES:
            yield b"".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield b"".join(chunk)
