"""How long to wait before the next attempt: 1, 2, 4, 8, then always 16 s, each ±20 %, so that clients that lost their
connections together do not reconnect together."""

from __future__ import annotations

from typing import Callable

from .errors import RollcallError

BACKOFF_FIRST_SECONDS = 1.0
BACKOFF_MAX_SECONDS = 16.0
BACKOFF_JITTER = 0.2
BACKOFF_DOUBLINGS_MAX = 16

RECONNECT_AFTER_MAX_SECONDS = 600.0
"""The server spreads reconnections itself; this bounds a wrong value."""

Random = Callable[[], float]


def backoff_delay(attempt: int, random: Random) -> float:
    """`attempt` counts from 0; `random` returns a number in [0, 1)."""
    base = min(BACKOFF_FIRST_SECONDS * 2.0 ** min(attempt, BACKOFF_DOUBLINGS_MAX), BACKOFF_MAX_SECONDS)
    return base * (1 + BACKOFF_JITTER * (2 * random() - 1))


def retry_delay(error: RollcallError, attempt: int, random: Random) -> float:
    """The delay that the server asks for takes precedence over the back-off."""
    if error.retry_after_seconds is not None and error.retry_after_seconds > 0:
        return min(error.retry_after_seconds, RECONNECT_AFTER_MAX_SECONDS)
    return backoff_delay(attempt, random)
