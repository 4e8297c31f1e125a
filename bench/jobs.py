"""The jobs: their sizes, and the targets for Rollcall."""

import dataclasses

EVERYONE = ("floor", "rollcall", "ws", "rollcall-socketio", "socketio")
NATIVE = ("floor", "rollcall")

# The other servers are far from most targets, so fewer rounds are enough for them.
OTHERS_ROUNDS_FULL, OTHERS_ROUNDS_QUICK = 3, 1


@dataclasses.dataclass(frozen=True)
class Size:
    """How much of a job is done: in full, or quickly."""

    clients: int
    rounds: int
    arguments: tuple = ()


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    title: str
    load_job: str
    metric: str  # the field of the generator's answer
    unit: str
    full: Size
    quick: Size
    servers: tuple = EVERYONE
    ratio_max: float | None = None  # Rollcall to floor
    value_max: float | None = None  # Rollcall, in `unit`
    socketio_gain_min: float | None = None  # npm Socket.IO to Rollcall's Socket.IO
    growth_from: str | None = None  # the job this one must cost no more than
    received_apart: bool = False  # clients receive on their own core (network.py)
    near: bool = False  # Rollcall is near the target, so the others do all rounds too


FULL_ECHO = ("--seconds", "1.5")
QUICK_ECHO = ("--seconds", "0.5")
FULL_FANOUT = ("--changes", "20")
QUICK_FANOUT = ("--changes", "10")
FULL_FLAT = ("--seconds", "3", "--rate", "10000")
QUICK_FLAT = ("--seconds", "1", "--rate", "10000")

# A cost counts as flat if it grows at most this much more than that of the floor.
GROWTH_MAX = 1.10

ALL = [
    Job("idle", "memory per idle connection", "idle", "bytes_per_connection", "B",
        Size(19500, 2), Size(4000, 1), value_max=1000, socketio_gain_min=5),
    Job("echo-100", "heartbeat, 100 clients", "echo", "cpu_us_per_message", "µs",
        Size(100, 7, FULL_ECHO), Size(100, 3, QUICK_ECHO), ratio_max=1.3, socketio_gain_min=3),
    Job("echo-1000", "heartbeat, 1,000 clients", "echo", "cpu_us_per_message", "µs",
        Size(1000, 7, FULL_ECHO), Size(1000, 3, QUICK_ECHO), ratio_max=1.3, socketio_gain_min=3),
    Job("echo-active", "heartbeat with activity, 1,000 clients", "echo", "cpu_us_per_message",
        "µs", Size(1000, 5, (*FULL_ECHO, "--active")), Size(1000, 3, (*QUICK_ECHO, "--active")),
        servers=NATIVE),
    Job("fanout", "presence change, per delivery", "fanout", "cpu_us_per_delivery", "µs",
        Size(10000, 5, FULL_FANOUT), Size(2000, 3, QUICK_FANOUT),
        socketio_gain_min=3, received_apart=True),
    Job("fanout-loopback", "the same, with the clients' reception", "fanout",
        "cpu_us_per_delivery", "µs",
        Size(10000, 7, FULL_FANOUT), Size(2000, 3, QUICK_FANOUT),
        ratio_max=1.15, socketio_gain_min=3, near=True),
    # "at most 100 µs where the floor takes 25"
    Job("connect", "connect, RS256 token", "connect", "cpu_us_per_connect", "µs",
        Size(5000, 5), Size(1250, 2), ratio_max=4),
    Job("flat-few", "heartbeat at 10,000/s, few open", "flat", "cpu_us_per_message", "µs",
        Size(1000, 5, FULL_FLAT), Size(500, 3, QUICK_FLAT), servers=NATIVE),
    Job("flat-many", "heartbeat at 10,000/s, many open", "flat", "cpu_us_per_message", "µs",
        Size(19500, 5, FULL_FLAT), Size(4000, 3, QUICK_FLAT), servers=NATIVE,
        growth_from="flat-few"),
]
