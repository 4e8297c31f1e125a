"""The servers under measurement: how each is started, driven and ended.

Every process started here is pinned to one core. It ends when the `with` block ends, and also when
this program is killed.
"""

import base64
import contextlib
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench" / "peers"
START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 10
PR_SET_PDEATHSIG = 1

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE = CORES[0]
LOAD_CORE = CORES[1] if len(CORES) > 1 else CORES[0]

# Lifts the limits that would slow the load generator; all other settings keep their defaults.
ROLLCALL_SETTINGS = {
    "presence.offline_grace_seconds": 0,
    "presence.min_dwell_ms": 0,
    "gateway.backpressure.inbound.command_rate_per_second": 1000000,
    "limits.messages_per_second_per_user": 0,
    "limits.rest_per_second_per_user": 0,
    "limits.contact_requests_per_hour": 0,
    "limits.chats_per_hour": 0,
    "limits.settings_per_minute": 0,
    "limits.reads_per_second_per_user": 0,
    "limits.signals_per_second_per_user": 0,
    "limits.calls_per_minute": 0,
    "limits.service_per_second_per_key": 0,
    "gateway.backpressure.inbound.command_rate_burst": 1000000,
    "gateway.shutdown.drain_timeout_seconds": 1,
}


class Unavailable(Exception):
    """A server or job cannot be measured here; the text is the reason."""


def child_setup(core, niceness):
    """Makes a child stay on its core (None: any), and end with this program.

    Linux groups processes by session and shares the processor among the groups first, so niceness
    has an effect only in a session of its own.
    """
    library = ctypes.CDLL(None)

    def setup():
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if core is not None:
            os.sched_setaffinity(0, {core})
        if niceness != 0:
            os.setsid()
            os.nice(niceness)
            with contextlib.suppress(OSError):
                pathlib.Path("/proc/self/autogroup").write_text(str(niceness))

    return setup


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_listening(process, port):
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Unavailable(f"ended at start with status {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise Unavailable("does not listen")


def stop(process):
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Server:
    """One kind of server; `dialect` is the load generator's dialect for it."""

    name = dialect = title = None

    def __init__(self, build, scratch, niceness=0):
        self.build = build
        self.scratch = scratch
        self.niceness = niceness

    def command(self, port):
        raise NotImplementedError

    def prepare(self):
        """Makes everything that the first start needs; raises Unavailable."""

    def tokens(self, count):
        """A file with one token a line, for bench0, bench1, …, and the token of the star."""
        path = self.scratch / f"names-{count}"
        if not path.exists():
            path.write_text("".join(f"bench{i}\n" for i in range(count)))
        return path, "star"

    def show_star(self, port):
        """Makes the presence of the star visible to everyone, if the server hides it by default."""

    @contextlib.contextmanager
    def running(self, wrapper=()):
        port = free_port()
        with open(self.scratch / f"{self.name}.log", "wb") as log:
            process = subprocess.Popen(
                [*wrapper, *map(str, self.command(port))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=child_setup(SERVER_CORE, self.niceness),
            )
            try:
                wait_until_listening(process, port)
                yield process, port
            finally:
                stop(process)

    def run_job(self, process, port, job, clients, arguments):
        tokens, star = self.tokens(clients)
        if job == "fanout":
            self.show_star(port)
        load = subprocess.run(
            [self.build / "bench" / "load", job, "--dialect", self.dialect, "--port", str(port),
             "--pid", str(process.pid), "--tokens", tokens, "--star", star,
             "--clients", str(clients), *arguments],
            capture_output=True, text=True, preexec_fn=child_setup(LOAD_CORE, self.niceness),
        )
        if load.returncode != 0:
            raise Unavailable(load.stderr.strip() or f"load ended with {load.returncode}")
        return json.loads(load.stdout)


class Floor(Server):
    name, dialect, title = "floor", "floor", "floor"

    def command(self, port):
        return [self.build / "bench" / "floor", port]


class Rollcall(Server):
    name, dialect, title = "rollcall", "native", "Rollcall"

    @property
    def program(self):
        return self.build / "rollcall"

    @property
    def data(self):
        return self.scratch / "rollcall-data"

    def command(self, port):
        settings = [f"--set={name}={value}" for name, value in ROLLCALL_SETTINGS.items()]
        return [self.program, "serve", "--dev", "--listen", f"127.0.0.1:{port}", "--workers", "1",
                "--data-dir", self.data, *settings]

    def prepare(self):
        if not self.program.exists():
            raise Unavailable("is not built")
        with self.running():  # the first start makes the signing key
            pass
        head = self.star_token().split(".")[0]
        algorithm = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["alg"]
        if algorithm != "RS256":
            raise Unavailable(f"signs with {algorithm}; the targets are for RS256")

    def make_tokens(self, *arguments):
        made = subprocess.run(
            [self.program, "token", *arguments, "--ttl", "86400", "--data-dir", self.data],
            capture_output=True, text=True, check=True)
        return made.stdout

    def tokens(self, count):
        path = self.scratch / f"tokens-{count}"
        if not path.exists():
            path.write_text(self.make_tokens("bench", "--count", str(count)))
        return path, self.star_token()

    def star_token(self):
        path = self.scratch / "token-star"
        if not path.exists():
            path.write_text(self.make_tokens("star").strip())
        return path.read_text()

    def show_star(self, port):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/me", method="PATCH",
            data=b'{"presence_visibility":"everyone"}',
            headers={"Authorization": f"Bearer {self.star_token()}",
                     "Content-Type": "application/json"})
        with contextlib.closing(urllib.request.urlopen(request, timeout=30)):
            pass


class RollcallSocketIo(Rollcall):
    name, dialect, title = "rollcall-socketio", "socketio", "Rollcall (Socket.IO)"


class Peer(Server):
    script = None

    def command(self, port):
        return ["node", PEERS / self.script, port]

    def prepare(self):
        if not (PEERS / "node_modules").exists():
            raise Unavailable("is not installed: npm install --prefix bench/peers")


class Ws(Peer):
    name, dialect, title, script = "ws", "native", "ws", "ws.mjs"


class SocketIo(Peer):
    name, dialect, title, script = "socketio", "socketio", "Socket.IO", "socketio.mjs"


ALL = [Floor, Rollcall, Ws, RollcallSocketIo, SocketIo]
