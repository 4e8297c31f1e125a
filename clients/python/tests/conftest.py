"""A real server for each test session: $ROLLCALL_BIN, by default build/rollcall of this repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

import pytest

ROOT = Path(__file__).resolve().parents[3]
BIN = os.environ.get("ROLLCALL_BIN", str(ROOT / "build" / "rollcall"))
SETTINGS = ("presence.offline_grace_seconds=0", "presence.min_dwell_ms=0", "gateway.shutdown.drain_timeout_seconds=1")
STOP_SECONDS_MAX = 30


@dataclass
class Server:
    url: str
    data_dir: Path

    def token(self, user: str, *, scope: str | None = None, ttl: int | None = None) -> str:
        options = [*(["--scope", scope] if scope else []), *(["--ttl", str(ttl)] if ttl else [])]
        command = [BIN, "token", user, "--data-dir", str(self.data_dir), *options]
        return subprocess.run(command, capture_output=True, check=True, text=True, env=environment()).stdout.strip()

    def dev_token(self, user: str) -> str:
        request = urllib.request.Request(self.url + "dev/token", json.dumps({"user": user}).encode(), method="POST")
        with urllib.request.urlopen(request) as answer:
            return str(json.load(answer)["token"])


def environment() -> dict[str, str]:
    """The server refuses to start with a ROLLCALL_ variable that is not a setting."""
    return {name: value for name, value in os.environ.items() if name != "ROLLCALL_BIN"}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("data")
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    process = subprocess.Popen([BIN, "serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", str(data_dir), *settings],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment())
    try:
        assert process.stdout is not None
        lines = (re.search(r"http://\S+", line) for line in process.stdout)
        yield Server(next(match.group() for match in lines if match), data_dir)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS_MAX)
