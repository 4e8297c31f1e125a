"""What the server offers over HTTP: contacts, chats and their history, settings, blocks, the call history.

Each call uses a thread of asyncio's pool and the client's own token.
"""

from __future__ import annotations

import asyncio
from typing import Any, Mapping, Sequence, cast

from .http_api import HttpApi, path
from .tokens import TokenSource
from .types import Chat, MessagePage, Presence


class People:
    def __init__(self, api: HttpApi, tokens: TokenSource) -> None:
        self._api = api
        self._http_tokens = tokens

    async def http(self, method: str, target: str, body: Any = None,
                   query: Mapping[str, str | int | None] | None = None) -> Any:
        """Any request of the HTTP API, with the client's token."""
        token = await self._http_tokens.current()
        return await asyncio.to_thread(self._api.call, token, method, target, body, query)

    # Contacts

    async def friends(self, *, status: str | None = None, in_call: bool | None = None, after: str | None = None,
                      limit: int | None = None) -> tuple[list[Presence], bool]:
        """A page of the contacts with their presence, and whether there are more."""
        query = {"status": status, "in_call": None if in_call is None else str(in_call).lower(), "after": after,
                 "limit": limit}
        answer = await self.http("GET", path("friends"), query=query)
        return answer["friends"], bool(answer.get("has_more"))

    async def contact_requests(self) -> dict[str, list[dict[str, str]]]:
        """The pending requests, as `incoming` and `outgoing`."""
        return cast("dict[str, list[dict[str, str]]]", await self.http("GET", path("contact-requests")))

    async def request_contact(self, user: str) -> dict[str, str]:
        """Returns the request's `id` and `status`: `pending`, or `accepted` if that user had sent one too."""
        return cast("dict[str, str]", await self.http("POST", path("contact-requests"), {"to": user}))

    async def accept_contact(self, request_id: str) -> None:
        await self.http("POST", path("contact-requests", request_id, "accept"))

    async def decline_contact(self, request_id: str) -> None:
        await self.http("POST", path("contact-requests", request_id, "decline"))

    async def withdraw_contact_request(self, request_id: str) -> None:
        await self.http("DELETE", path("contact-requests", request_id))

    async def remove_contact(self, user: str) -> None:
        await self.http("DELETE", path("contacts", user))

    async def blocks(self) -> Any:
        return await self.http("GET", path("blocks"))

    async def block(self, user: str) -> None:
        await self.http("PUT", path("blocks", user))

    async def unblock(self, user: str) -> None:
        await self.http("DELETE", path("blocks", user))

    # Chats

    async def create_chat(self, members: Sequence[str], *, chat_id: str | None = None,
                          members_can_add: bool | None = None) -> Chat:
        fields = {"members": list(members), "chat_id": chat_id, "members_can_add": members_can_add}
        given = {name: value for name, value in fields.items() if value is not None}
        return cast(Chat, await self.http("POST", path("chats"), given))

    async def direct_chat(self, user: str) -> Chat:
        """The one direct chat of the two users."""
        return cast(Chat, await self.http("POST", path("chats"), {"direct_with": user}))

    async def chats(self, *, cursor: str | None = None, limit: int | None = None) -> tuple[list[Chat], str | None]:
        """A page of the user's chats by last activity, newest first, and the cursor of the next page."""
        answer = await self.http("GET", path("chats"), query={"cursor": cursor, "limit": limit})
        return answer["chats"], answer.get("next_cursor") if answer.get("has_more") else None

    async def chat(self, chat_id: str) -> Chat:
        return cast(Chat, await self.http("GET", path("chats", chat_id)))

    async def update_chat(self, chat_id: str, *, members_can_add: bool) -> Chat:
        return cast(Chat, await self.http("PATCH", path("chats", chat_id), {"members_can_add": members_can_add}))

    async def add_member(self, chat_id: str, user: str) -> None:
        await self.http("PUT", path("chats", chat_id, "members", user))

    async def remove_member(self, chat_id: str, user: str) -> None:
        """Removes a member or, with the own id, leaves."""
        await self.http("DELETE", path("chats", chat_id, "members", user))

    async def add_admin(self, chat_id: str, user: str) -> None:
        await self.http("PUT", path("chats", chat_id, "admins", user))

    async def remove_admin(self, chat_id: str, user: str) -> None:
        await self.http("DELETE", path("chats", chat_id, "admins", user))

    async def mark_read(self, chat_id: str, sequence: int) -> int:
        """Moves the read mark, as ack() does; returns the mark."""
        return int((await self.http("POST", path("chats", chat_id, "read"), {"sequence": sequence}))["sequence"])

    async def history(self, chat_id: str, *, before_sequence: int | None = None, after_sequence: int | None = None,
                      limit: int | None = None) -> MessagePage:
        """A page of messages before or after a sequence; there are no events for it."""
        query = {"before_sequence": before_sequence, "after_sequence": after_sequence, "limit": limit}
        return cast(MessagePage, await self.http("GET", path("chats", chat_id, "messages"), query=query))

    # Settings and calls

    async def me(self) -> dict[str, Any]:
        return cast("dict[str, Any]", await self.http("GET", path("me")))

    async def update_me(self, **settings: Any) -> dict[str, Any]:
        """Changes settings such as presence_visibility, read_receipts, display_name; None removes the last."""
        return cast("dict[str, Any]", await self.http("PATCH", path("me"), settings))

    async def calls(self, *, limit: int | None = None) -> list[dict[str, Any]]:
        """The last calls, the latest first."""
        return cast("list[dict[str, Any]]", (await self.http("GET", path("calls"), query={"limit": limit}))["calls"])
