"""A network namespace for the run, in which clients receive on their own core.

On loopback the kernel receives a packet within the sender's send(): in a fan-out, more than half of
a server's apparent cost is its clients' reception, which normally happens on other machines. Linux
can move reception to a chosen core (receive packet steering). That is a setting of the network
device, so the run first enters a network namespace and leaves the machine's own device alone; this
needs root.
"""

import contextlib
import fcntl
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile

INSIDE = "ROLLCALL_BENCH_NETWORK"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
STEERING = "class/net/lo/queues/rx-0/rps_cpus"

sysfs = None  # of this namespace


def enter():
    """Starts this program again in a new namespace, if that is allowed."""
    if INSIDE in os.environ or os.geteuid() != 0:
        return
    wrapper = ["unshare", "--net", "--mount"]
    with contextlib.suppress(OSError):
        if subprocess.run([*wrapper, "true"], capture_output=True).returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp(wrapper[0], [*wrapper, sys.executable, *sys.argv])


def bring_loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


@contextlib.contextmanager
def ready():
    """Makes the namespace usable, if enter() created one."""
    global sysfs
    if INSIDE not in os.environ:
        yield
        return
    bring_loopback_up()
    with tempfile.TemporaryDirectory(prefix="rollcall-bench-sysfs-") as mountpoint:
        mounted = subprocess.run(["mount", "-t", "sysfs", "none", mountpoint], capture_output=True)
        sysfs = pathlib.Path(mountpoint) if mounted.returncode == 0 else None
        try:
            yield
        finally:
            if sysfs:
                subprocess.run(["umount", mountpoint], check=True)
            sysfs = None


def can_steer():
    return sysfs is not None and (sysfs / STEERING).exists()


@contextlib.contextmanager
def received_on(core):
    """Receives all packets on this core, whichever process sent them."""
    (sysfs / STEERING).write_text(f"{1 << core:x}")
    try:
        yield
    finally:
        (sysfs / STEERING).write_text("0")
