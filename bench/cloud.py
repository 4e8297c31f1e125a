"""Runs the servers of a benchmark that needs DynamoDB Local or Kafka (tools/cloud-servers)."""

import contextlib
import os
import subprocess
import sys
import time

import servers

CLOUD_SERVERS = servers.ROOT / "tools" / "cloud-servers"
START_SECONDS = 120


@contextlib.contextmanager
def running(command, log, environment=None):
    with open(log, "wb") as out:
        process = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   env={**os.environ, **(environment or {})}, preexec_fn=servers.child_setup(None, 0))
    try:
        yield process
    finally:
        servers.stop(process)


def wait_until(check, what):
    until = time.monotonic() + START_SECONDS
    while not check():
        if time.monotonic() > until:
            sys.exit(f"{what}: not within {START_SECONDS} s")
        time.sleep(0.2)


def answers(command):
    return subprocess.run([*map(str, command)], capture_output=True, check=False).returncode == 0
