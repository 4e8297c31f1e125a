"""Rollcall's client for asyncio. The service API of an application's backend is `rollcall.service`."""

from .client import Client
from .errors import RollcallError
from .types import (Chat, ChatSnapshot, Message, MessageAck, MessagePage, Presence, ServerMessage, State, StateChange,
                    Status)

__all__ = ["Chat", "ChatSnapshot", "Client", "Message", "MessageAck", "MessagePage", "Presence", "RollcallError",
           "ServerMessage", "State", "StateChange", "Status"]
