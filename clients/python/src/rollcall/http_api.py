"""HTTP with JSON both ways, by the standard library: one request, one answer, one connection."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any, Iterable, Mapping, Union
from urllib.parse import quote, urlencode, urlsplit

from .errors import RollcallError

HTTP_TIMEOUT_SECONDS = 30.0
ANSWER_BYTES_MAX = 1 << 28

_CODES = {400: "INVALID_MESSAGE", 401: "UNAUTHENTICATED", 403: "FORBIDDEN", 404: "NOT_FOUND", 413: "MESSAGE_TOO_LARGE",
          429: "RATE_LIMITED"}
"""For answers that do not come from the server itself, but from a proxy before it."""

Query = Mapping[str, Union[str, int, None]]


def path(*segments: str) -> str:
    """A path below /v1 with each segment escaped."""
    return "/v1/" + "/".join(quote(segment, safe="") for segment in segments)


class HttpApi:
    """Sends requests to one server. It keeps no state, so any number of threads may use it."""

    def __init__(self, url: str, *, timeout: float = HTTP_TIMEOUT_SECONDS,
                 ssl_context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
        if scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"not an HTTP address: {url}")
        self._secure = scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._timeout = timeout
        self._ssl_context = ssl_context

    def call(self, token: str, method: str, target: str, body: Any = None, query: Query | None = None) -> Any:
        """Returns the answer's JSON, None if it has none; raises RollcallError otherwise."""
        data = None if body is None else json.dumps(body).encode()
        return self.exchange(token, method, target, data, "application/json", query)

    def exchange(self, token: str, method: str, target: str, data: bytes | Iterable[bytes] | None, content_type: str,
                 query: Query | None = None) -> Any:
        """As call(), with a body of any type; an iterable is streamed."""
        given = {name: str(value) for name, value in (query or {}).items() if value is not None}
        if given:
            target += "?" + urlencode(given)
        headers = {"Authorization": f"Bearer {token}", "Connection": "close"}
        if data is not None:
            headers["Content-Type"] = content_type
        connection = self._connection()
        try:
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            text = response.read(ANSWER_BYTES_MAX)
        except TimeoutError:
            raise RollcallError("TIMEOUT", f"no answer to {method} {target} within {self._timeout} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise RollcallError("SERVICE_UNAVAILABLE", f"{method} failed: {error!r}") from error
        finally:
            connection.close()
        return _answer(response, text)

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._ssl_context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)


def _answer(response: http.client.HTTPResponse, text: bytes) -> Any:
    try:
        answer = json.loads(text) if text else None
    except ValueError:
        answer = None
    if response.status < 300:
        return answer
    raise http_error(response.status, answer, response.headers.get("Retry-After"))


def http_error(status: int, answer: Any, retry_after: str | None) -> RollcallError:
    """The error of an answer or a refused handshake."""
    detail = answer.get("error") if isinstance(answer, dict) else None
    error = detail if isinstance(detail, dict) else {}
    seconds = error.get("retry_after_seconds")
    if seconds is None and retry_after is not None and retry_after.isdigit():
        seconds = float(retry_after)
    code = error.get("code") or _CODES.get(status, "SERVICE_UNAVAILABLE" if status >= 500 else "INVALID_MESSAGE")
    return RollcallError(code, error.get("message") or f"HTTP {status}", retry_after_seconds=seconds, status=status)
