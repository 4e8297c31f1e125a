"""Lets the scenarios use the Python client; README.md describes the lines."""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

from rollcall import Client, RollcallError

EVENTS = ("presence", "message", "typing", "receipt", "connection_closing", "contact_request", "contact_accepted",
          "contact_removed", "chat_added", "chat_removed", "message_deleted", "sync_required", "delivery", "call_incoming", "call_accepted", "call_rejected", "call_ended",
          "call_signal")
clients: dict[str, Client] = {}


def emit(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def open_client(name: str, url: str, token_file: str, device_id: str) -> None:
    client = clients[name] = Client(url, get_token=lambda: Path(token_file).read_text(), device_id=device_id)
    client.on("state", lambda change: emit({"client": name, "event": "state", "data": {
        key: change.get(key) for key in ("state", "final", "reason") if change.get(key) is not None}}))
    for event in EVENTS:
        client.on(event, lambda data, event=event: emit({"client": name, "event": event, "data": data}))  # type: ignore[misc]
    asyncio.ensure_future(client.connect()).add_done_callback(lambda done: done.cancelled() or done.exception())


OPERATIONS: dict[str, Any] = {
    "close": lambda c: c.close(),
    "subscribe_presence": lambda c, user_ids: c.subscribe_presence(user_ids),
    "open_chat": lambda c, chat_id, after_sequence=None: c.open_chat(chat_id, after_sequence=after_sequence),
    "close_chat": lambda c, chat_id: c.close_chat(chat_id),
    "send_message": lambda c, chat_id, body, client_message_id: c.send_message(
        chat_id, body, client_message_id=client_message_id),
    "typing": lambda c, chat_id, typing: c.typing(chat_id, typing),
    "ack": lambda c, chat_id, sequence: c.ack(chat_id, sequence),
    "request_call": lambda c, to: c.request_call(to),
    "accept_call": lambda c, call_id: c.accept_call(call_id),
    "reject_call": lambda c, call_id: c.reject_call(call_id),
    "end_call": lambda c, call_id: c.end_call(call_id),
    "signal": lambda c, call_id, data: c.signal(call_id, data),
    "send_event": lambda c, name, data=None: c.send_event(name, data),
    "request_contact": lambda c, user_id: c.request_contact(user_id),
    "contact_requests": lambda c: c.contact_requests(),
    "accept_contact": lambda c, request_id: c.accept_contact(request_id),
    "remove_contact": lambda c, user_id: c.remove_contact(user_id),
    "friends": lambda c: c.friends(),
    "block": lambda c, user_id: c.block(user_id),
    "create_chat": lambda c, chat_id, members: c.create_chat(members, chat_id=chat_id),
    "direct_chat": lambda c, user_id: c.direct_chat(user_id),
    "chat": lambda c, chat_id: c.chat(chat_id),
    "history": lambda c, chat_id, before_sequence, limit: c.history(chat_id, before_sequence=before_sequence, limit=limit),
    "mark_read": lambda c, chat_id, sequence: c.mark_read(chat_id, sequence),
    "remove_member": lambda c, chat_id, user_id: c.remove_member(chat_id, user_id),
}
# What a result that is not an object is called in the table.
NAMES = {"request_call": lambda call_id: {"call_id": call_id}, "mark_read": lambda sequence: {"sequence": sequence},
         "friends": lambda page: {"friends": page[0]}, "send_event": lambda data: {"data": data}}


async def perform(command: dict[str, Any]) -> None:
    operation, name, args = command["do"], command["client"], command["args"]
    try:
        result = open_client(name, **args) if operation == "open" else OPERATIONS[operation](clients[name], **args)
        result = await result if asyncio.iscoroutine(result) else result
        emit({"id": command["id"], "result": NAMES.get(operation, lambda same: same)(result)})
    except Exception as error:
        code = error.code if isinstance(error, RollcallError) else "BUG"
        emit({"id": command["id"], "error": {"code": code, "message": repr(error)}})


async def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    emit({"hello": {"name": "Python"}})
    loop = asyncio.get_running_loop()
    running: set[asyncio.Task[None]] = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.ensure_future(perform(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)


asyncio.run(main())
