"""Messages of a chat: each once, in order, with gaps filled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollcall.chats import HELD_MESSAGES_MAX, Chats
from rollcall.errors import RollcallError
from rollcall.types import Message, MessagePage


def message(sequence: int) -> Message:
    return {"chat_id": "c", "message_id": f"m{sequence}", "sequence": sequence, "sender_id": "bob",
            "body": f"#{sequence}", "sent_at": "now"}


class World:
    """Chats whose server has the messages 1 … `latest`, in pages of two."""

    def __init__(self, latest: int = 0) -> None:
        self.latest = latest
        self.delivered: list[int] = []
        self.gaps: list[str] = []
        self.asked: list[int] = []
        self.chats = Chats(self.fetch, lambda each: self.delivered.append(each["sequence"]), self.gaps.append)

    async def fetch(self, chat_id: str, after: int) -> MessagePage:
        self.asked.append(after)
        await asyncio.sleep(0)
        last = min(after + 2, self.latest)
        return {"messages": [message(each) for each in range(after + 1, last + 1)], "has_more": last < self.latest,
                "latest_sequence": self.latest}


def test_duplicates_are_delivered_once() -> None:
    world = World()
    for sequence in (1, 2, 2, 1, 3, 3):
        world.chats.offer(message(sequence))
    assert world.delivered == [1, 2, 3] and not world.gaps


def test_messages_behind_a_gap_are_held_until_a_sync_has_filled_it() -> None:
    world = World(5)
    world.chats.offer(message(1))
    world.chats.offer(message(4))
    assert world.delivered == [1] and world.gaps == ["c"]
    assert asyncio.run(world.chats.sync("c")) == 5
    assert world.delivered == [1, 2, 3, 4, 5]


def test_a_deleted_message_behind_a_gap_is_delivered_without_its_body() -> None:
    delivered: list[Message] = []
    chats = Chats(World().fetch, delivered.append, lambda chat_id: None)
    for sequence in (1, 3):
        chats.offer(message(sequence))
    for chat_id, sequence in (("elsewhere", 3), ("c", 1), ("c", 3)):
        chats.on_deleted(chat_id, sequence)
    chats.offer(message(2))
    assert [each.get("body") for each in delivered] == ["#1", "#2", None] and delivered[2]["deleted"]


def test_one_sync_of_a_chat_runs_at_a_time() -> None:
    world = World(6)
    world.chats.open("c", 0)

    async def sync_twice() -> tuple[int, int]:
        return await asyncio.gather(world.chats.sync("c"), world.chats.sync("c"))

    assert tuple(asyncio.run(sync_twice())) == (6, 6)
    assert world.asked == [0, 2, 4] and world.delivered == [1, 2, 3, 4, 5, 6]


def test_a_chat_opened_without_a_start_begins_at_the_latest_message() -> None:
    world = World()
    world.chats.open("c", None)
    world.chats.offer(message(8))  # before the snapshot
    assert world.delivered == []
    world.chats.begin("c", 8)
    world.chats.offer(message(9))
    assert world.delivered == [8, 9]


def test_a_complete_sync_that_leaves_a_gap_skips_it() -> None:
    world = World()
    world.chats.offer(message(1))
    world.chats.offer(message(4))

    async def empty(_chat: str, _after: int) -> MessagePage:
        return {"messages": [], "has_more": False, "latest_sequence": 4}

    world.chats._fetch_page = empty
    asyncio.run(world.chats.sync("c"))
    assert world.delivered == [1, 4]


@pytest.mark.parametrize("page", [{"messages": [], "has_more": True, "latest_sequence": 9}])
def test_a_sync_that_does_not_advance_fails(page: Any) -> None:
    world = World()
    world.chats.open("c", 0)

    async def stuck(_chat: str, _after: int) -> MessagePage:
        return page  # type: ignore[no-any-return]

    world.chats._fetch_page = stuck
    with pytest.raises(RollcallError) as failure:
        asyncio.run(world.chats.sync("c"))
    assert failure.value.code == "INVALID_MESSAGE"


def test_held_messages_are_bounded() -> None:
    world = World()
    world.chats.open("c", 0)
    for sequence in range(2, HELD_MESSAGES_MAX + 50):
        world.chats.offer(message(sequence))
    world.chats.offer(message(1))
    assert world.delivered == list(range(1, HELD_MESSAGES_MAX + 2))


def test_what_a_closing_connection_missed_is_restored() -> None:
    world = World()
    world.chats.mark_missed({"c": 7, "d": None})
    assert world.chats.to_restore == ["c", "d"] and world.chats.last_sequence("c") == 7
