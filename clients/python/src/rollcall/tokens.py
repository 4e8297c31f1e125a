"""Where tokens come from and when they are replaced.

The client reads only `exp` of a token, to replace it before the server closes the connection. It does not verify
tokens; the server does.
"""

from __future__ import annotations

import base64
import inspect
import json
import math
import time
from typing import Awaitable, Callable, Union

from .errors import RollcallError

GetToken = Callable[[], Union[str, Awaitable[str]]]

REFRESH_MARGIN_SECONDS = 60.0
"""Fetch the next token this long before the present one expires …"""
REFRESH_SHORT_LIFE_PART = 0.5
"""… or, if the token expires sooner, after this part of the remaining time."""
REFRESH_PAUSE_MIN_SECONDS = 1.0
"""The shortest wait, in case get_token keeps returning tokens that are about to expire."""

EXPIRY_SLACK_SECONDS = 2.0
"""A token that expires this soon is not used for a handshake."""


def token_expiry(token: str) -> float:
    """When a token expires, in seconds since 1970; infinity if it has no `exp`."""
    try:
        payload = token.split(".")[1]
        expiry = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"]
        return float(expiry)
    except (ValueError, KeyError, IndexError, TypeError):
        return math.inf


class TokenSource:
    """The present token and, if the application has a `get_token`, the source of the next."""

    def __init__(self, token: str | None, get_token: GetToken | None) -> None:
        if token is None and get_token is None:
            raise TypeError("token or get_token is needed")
        self._token = token
        self._get_token = get_token

    @property
    def renewable(self) -> bool:
        return self._get_token is not None

    @property
    def expires_at(self) -> float:
        return math.inf if self._token is None else token_expiry(self._token)

    async def current(self) -> str:
        """A token for a handshake: the present one until it expires, else a fresh one."""
        if self._token is not None and time.time() < self.expires_at - EXPIRY_SLACK_SECONDS:
            return self._token
        if self.renewable:
            return await self.fetch()
        raise RollcallError("UNAUTHENTICATED", "the token has expired")

    async def fetch(self) -> str:
        if self._get_token is None:
            raise RollcallError("UNAUTHENTICATED", "there is no get_token for a new token")
        result = self._get_token()
        token = await result if inspect.isawaitable(result) else result
        if not isinstance(token, str) or not token:
            raise RollcallError("UNAUTHENTICATED", "get_token returned no token")
        self._token = token
        return token

    def replace(self, token: str) -> None:
        self._token = token

    def discard(self) -> bool:
        """The server refused the present token. Returns False if there is no other."""
        if self.renewable:
            self._token = None
        return self.renewable

    def refresh_wait(self, skew_seconds: float) -> float:
        """How long until the next refresh. `skew_seconds` is the server's clock minus ours: the server's decides."""
        left = self.expires_at - time.time() - skew_seconds
        return max(left - REFRESH_MARGIN_SECONDS, left * REFRESH_SHORT_LIFE_PART, REFRESH_PAUSE_MIN_SECONDS)
