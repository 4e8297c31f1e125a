"""The server's messages. Fields keep the names that they have in the protocol; unknown ones may be present."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Status = Literal["online", "away", "offline", "unknown"]
State = Literal["DISCONNECTED", "CONNECTING", "SYNCING", "READY", "CLOSING", "BACKOFF"]
ServerMessage = dict[str, Any]
"""Any reply or push, with the fields of its type."""


class _Presence(TypedDict):
    user_id: str
    status: Status
    in_call: bool
    last_seen: str | None
    version: int


class Presence(_Presence, total=False):
    """`version` grows with every change of that user; 0 where the status is `unknown`."""

    reason: Literal["privacy", "not_contacts"]
    stale: bool
    timestamp: str
    display_name: str | None
    avatar_url: str | None


class _Message(TypedDict):
    chat_id: str
    message_id: str
    sequence: int
    sender_id: str | None
    sent_at: str


class Message(_Message, total=False):
    """`sequence` is dense within the chat, from 1. A deleted message has no body; a system message no sender."""

    body: str
    deleted: bool
    client_message_id: str
    """Only on messages that this client sent."""


class _MessageAck(TypedDict):
    chat_id: str
    client_message_id: str
    message_id: str
    sequence: int
    duplicate: bool


class MessageAck(_MessageAck, total=False):
    """`duplicate`: the server had stored it already; `body_differs`: with another body, which it keeps."""

    body_differs: bool


class ChatSnapshot(TypedDict):
    chat_id: str
    presences: list[Presence]
    typing: list[str]
    latest_sequence: int


class MessagePage(TypedDict):
    messages: list[Message]
    has_more: bool
    latest_sequence: int


class _Chat(TypedDict):
    chat_id: str
    kind: Literal["group", "direct"]
    members: list[str]
    admins: list[str]
    members_can_add: bool
    latest_sequence: int
    unread: int


class Chat(_Chat, total=False):
    last_activity: str
    profiles: dict[str, dict[str, str | None]]
    read: dict[str, int]


class _StateChange(TypedDict):
    state: State
    previous: State


class StateChange(_StateChange, total=False):
    """On BACKOFF `delay_seconds`; `final` where no further attempt will be made, and `error` says why."""

    reason: str
    code: int
    delay_seconds: float
    final: bool
    error: Exception
