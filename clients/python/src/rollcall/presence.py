"""The last known presence of users, and the subscriptions of the application.

Snapshots and changes may overtake one another on their way; `version` orders them. Version 0 means that this client may
no longer see the user; it is always applied.
"""

from __future__ import annotations

from typing import Iterable

from .types import Presence

PRESENCE_CACHE_MAX = 1000
"""Users cached. Beyond it, the one updated longest ago that is not subscribed to is dropped."""

SHOWN_FIELDS = ("status", "in_call", "last_seen", "stale", "reason")


class PresenceCache:
    def __init__(self) -> None:
        self._known: dict[str, Presence] = {}
        self._subscribed: dict[str, None] = {}

    def get(self, user_id: str) -> Presence | None:
        return self._known.get(user_id)

    def apply(self, presence: Presence) -> bool:
        """Returns False if the presence is outdated or changes nothing."""
        user_id, version = presence["user_id"], presence.get("version", 0)
        known = self._known.get(user_id)
        if known is not None and 0 < version < known.get("version", 0):
            return False
        self._known.pop(user_id, None)
        self._known[user_id] = presence
        self._drop_surplus()
        return known is None or any(known.get(field) != presence.get(field) for field in SHOWN_FIELDS)

    def subscribe(self, user_ids: Iterable[str]) -> list[str]:
        """Returns the ids that are new."""
        added = [user_id for user_id in user_ids if user_id not in self._subscribed]
        self._subscribed.update(dict.fromkeys(added))
        return added

    def unsubscribe(self, user_ids: Iterable[str]) -> None:
        for user_id in user_ids:
            self._subscribed.pop(user_id, None)

    @property
    def subscribed(self) -> list[str]:
        """What a new connection subscribes to again."""
        return list(self._subscribed)

    def _drop_surplus(self) -> None:
        if len(self._known) > PRESENCE_CACHE_MAX:
            surplus = next((user_id for user_id in self._known if user_id not in self._subscribed), None)
            if surplus is not None:
                del self._known[surplus]
