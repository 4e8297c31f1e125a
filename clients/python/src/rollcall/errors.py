"""All errors of the client are one class, so that a caller needs only `code` to decide.

The server's codes are passed on unchanged (INVALID_MESSAGE, RATE_LIMITED, …). The client adds four of its own:

  TIMEOUT        no reply within the time limit; the request may or may not have taken effect
  DISCONNECTED   the connection was lost before the reply; the request may have taken effect
  QUEUE_FULL     a limit of this client was reached; nothing was sent
  CLOSED         close() was called, or the server does not allow reconnecting
"""

from __future__ import annotations

from typing import Any, Mapping

RETRYABLE_CODES = frozenset({"RATE_LIMITED", "SERVER_BUSY", "SERVICE_UNAVAILABLE", "TIMEOUT", "QUEUE_FULL"})


class RollcallError(Exception):
    """What the server refused, or the client could not do."""

    def __init__(self, code: str, message: str, *, retry_after_seconds: float | None = None,
                 client_message_id: str | None = None, chat_id: str | None = None,
                 status: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.client_message_id = client_message_id
        self.chat_id = chat_id
        self.status = status
        """The HTTP status, of a REST answer or a refused handshake."""

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> RollcallError:
        """Makes the error for an `error` message of the server."""
        return cls(str(message.get("code", "INVALID_MESSAGE")), str(message.get("message", "refused")),
                   retry_after_seconds=message.get("retry_after_seconds", message.get("grace_period_seconds")),
                   client_message_id=message.get("client_message_id"), chat_id=message.get("chat_id"))

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.code in RETRYABLE_CODES
