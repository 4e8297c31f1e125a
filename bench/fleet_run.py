"""A fleet on this machine: Redis, a ledger, gateways and swarms of clients; started, sampled and ended.

Everything ends with the `with` block, and when this program is killed. Only loopback is used; each swarm has
a source address of its own (127.1.0.1, 127.1.0.2, …), so that ports suffice.
"""

import contextlib
import json
import os
import pathlib
import resource
import socket
import subprocess
import time
import urllib.request

import servers

SECRET = "a-secret-of-the-benchmark-only"
DESCRIPTORS_RESERVED = 120  # of a process: Redis, ledger, listeners, logs
START_SECONDS_MAX = 120
SCAN_COUNT = 5000
SLOT_SECONDS = 0.25  # of the swarms' lists
PROFILES = {"realtime": (5, 15), "standard": (30, 45), "relaxed": (30, 90)}
CPU_CLOCK_SCHEDULED = 2


def descriptor_limit():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def connections_per_process():
    return descriptor_limit() - DESCRIPTORS_RESERVED


def processor_seconds(pid):
    """Of all threads, by the process's own clock, which is exact where /proc counts in ticks (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | CPU_CLOCK_SCHEDULED)


def memory_of(pid):
    """Proportional and resident bytes of a process."""
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        found[name] = int(rest.split()[0]) * 1024
    return {"pss": found["Pss"], "rss": found["Rss"]}


def slab_of_sockets(socket_count):
    """Bytes of the kernel's objects of so many sockets in use: the counts of the caches themselves include freed objects."""
    caches = {"TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi", "ep_head", "lsm_file_cache", "lsm_inode_cache"}
    lines = [line.split() for line in pathlib.Path("/proc/slabinfo").read_text().splitlines()[2:]]
    return socket_count * sum(int(line[3]) for line in lines if line[0] in caches)


def machine_memory():
    found = {}
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        found[name] = int(rest.split()[0]) * 1024
    sockets = pathlib.Path("/proc/net/sockstat").read_text().split("\n")
    tcp = next(line for line in sockets if line.startswith("TCP:")).split()
    pages = int(tcp[tcp.index("mem") + 1])
    try:
        slab = slab_of_sockets(int(tcp[tcp.index("inuse") + 1]))
    except PermissionError:  # only root reads it
        slab = found["Slab"]
    return {"available": found["MemAvailable"], "slab": slab,
            "socket_buffers": pages * os.sysconf("SC_PAGE_SIZE")}


class Redis:
    """A connection to Redis with just enough of its protocol."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.file = self.socket.makefile("rb")

    def ask(self, *words):
        parts = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        return self.read()

    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind == b"-":
            raise servers.Unavailable(f"Redis answers {rest.decode()}")
        return int(rest) if kind == b":" else rest

    def info(self):
        text = self.ask("INFO", "everything").decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def count_keys(self, prefix):
        cursor, count = b"0", 0
        while True:
            cursor, keys = self.ask("SCAN", cursor.decode(), "MATCH", f"{prefix}*", "COUNT", SCAN_COUNT)
            count += len(keys)
            if cursor == b"0":
                return count

    def close(self):
        self.socket.close()


class Swarm:
    """One process of clients."""

    def __init__(self, fleet, number, first, count, at_once):
        ports = ",".join(str(gateway.port) for gateway in fleet.gateways)
        self.count = count
        self.process = fleet.start(
            [fleet.build / "bench" / "swarm", "--ports", ports, "--source", f"127.1.{number // 250}.{number % 250 + 1}",
             "--tokens", fleet.tokens, "--first", first, "--clients", count,
             "--heartbeat-ms", fleet.heartbeat_seconds * 1000, "--connects-at-once", at_once,
             "--reconnect-ms", round(1000 * fleet.reconnect_seconds)],
            f"swarm-{number}", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def request(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise servers.Unavailable("a swarm of clients ended; see its log")
        return json.loads(line)


class Gateway:
    def __init__(self, fleet, number, workers=1):
        self.port = servers.free_port()
        self.number = number
        self.fleet = fleet
        self.process = fleet.start(
            [fleet.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--node-id", f"gw-{number:04}",
             "--workers", workers, "--state", fleet.state,
             "--ledger", f"remote://127.0.0.1:{fleet.ledger_port}", "--jwt-keys", fleet.keys,
             "--data-dir", fleet.scratch / f"gw-{number}", f"--set=timing.profile={fleet.profile}",
             f"--set=peer.secret={SECRET}", "--set=log.level=warn",
             *(f"--set={name}={value}" for name, value in fleet.settings.items())],
            f"gateway-{number}")

    def is_ready(self):
        with contextlib.suppress(OSError), urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/readyz", timeout=10) as answer:
            return answer.status == 200
        return False

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        found = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                name = name.partition("{")[0]
                found[name] = found.get(name, 0) + float(value)
        return found


class Fleet:
    def __init__(self, build, scratch, profile, users, gateway_count, niceness=0, masters=1, settings=None):
        self.build = pathlib.Path(build)
        self.scratch = pathlib.Path(scratch)
        self.profile = profile
        self.heartbeat_seconds, self.window_seconds = PROFILES[profile]
        self.users = users
        self.gateway_count = gateway_count
        self.niceness = niceness
        self.masters = masters
        self.settings = settings or {}
        self.reconnect_seconds = 2  # over which clients spread their first attempt after a loss
        self.program = self.build / "rollcall"
        self.tokens = self.keys = None  # until make_tokens()
        self.processes = []
        self.names = {}
        self.gateways = []
        self.swarms = []

    # ---- starting and ending ----

    def start(self, command, name, **options):
        log = open(self.scratch / f"{name}.log", "wb")
        options = {"stdin": subprocess.DEVNULL, "stdout": log, **options}
        process = subprocess.Popen([str(word) for word in command], stderr=log,
                                   preexec_fn=servers.child_setup(None, self.niceness), **options)
        log.close()
        self.processes.append(process)
        self.names[process.pid] = name
        return process

    def make_tokens(self, extra=0, folder=None):
        """With `folder`, keys and tokens stay there for later runs."""
        folder = folder or self.scratch
        folder.mkdir(parents=True, exist_ok=True)
        self.keys, self.tokens = folder / "public.pem", folder / f"tokens-{self.users + extra}"
        if self.tokens.exists():
            return
        private = folder / "private.pem"
        if not private.exists():
            subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
            subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", self.keys], check=True)
        unfinished = self.tokens.with_suffix(".new")
        with open(unfinished, "wb") as out:
            subprocess.run([self.program, "token", "user", "--count", str(self.users + extra), "--key", private,
                            "--ttl", "86400"], stdout=out, check=True)
        unfinished.rename(self.tokens)

    def start_redis(self):
        ports = [servers.free_port() for _ in range(self.masters)]
        self.redis_processes = []
        for number, port in enumerate(ports):
            folder = self.scratch / f"redis-{number}"
            folder.mkdir()
            cluster = ["--cluster-enabled", "yes", "--cluster-port", servers.free_port()] if self.masters > 1 else []
            process = self.start(
                ["redis-server", servers.ROOT / "deploy" / "redis.conf", "--port", port, "--dir", folder,
                 "--loglevel", "warning", "--maxmemory", "6gb", *cluster], f"redis-{number}",
                start_new_session=True)  # Linux shares processors among sessions first: Redis is not one of a hundred
            servers.wait_until_listening(process, port)
            self.redis_processes.append(process)
        self.stores = [Redis(port) for port in ports]
        self.redis = self.stores[0]
        if self.masters > 1:
            self.join_cluster(ports)
        else:
            self.state = f"redis://127.0.0.1:{ports[0]}"

    def join_cluster(self, ports):
        addresses = [f"127.0.0.1:{port}" for port in ports]
        subprocess.run(["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"], check=True,
                       stdout=subprocess.DEVNULL)
        self.state = f"redis-cluster://{','.join(addresses)}"
        deadline = time.monotonic() + START_SECONDS_MAX
        while any(b"cluster_state:ok" not in store.ask("CLUSTER", "INFO") for store in self.stores):
            if time.monotonic() > deadline:
                raise servers.Unavailable("the cluster does not form")
            time.sleep(0.2)

    def start_servers(self):
        self.start_redis()
        self.ledger_port = servers.free_port()
        self.ledger_process = self.start(
            [self.program, "ledger", "--peer-listen", f"127.0.0.1:{self.ledger_port}",
             "--ledger", f"sqlite:{self.scratch / 'ledger.db'}", f"--set=peer.secret={SECRET}"], "ledger")
        servers.wait_until_listening(self.ledger_process, self.ledger_port)
        self.gateways = [Gateway(self, number) for number in range(self.gateway_count)]
        self.wait_until_ready()

    def add_gateway(self, workers):
        self.gateways.append(Gateway(self, len(self.gateways), workers))
        self.wait_until_ready()

    def wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while not all(gateway.is_ready() for gateway in self.gateways):
            self.check_alive()
            if time.monotonic() > deadline:
                raise servers.Unavailable("the gateways do not become ready")
            time.sleep(0.2)

    def start_clients(self, in_flight=192):
        per_swarm = connections_per_process()
        count = -(-self.users // per_swarm)
        at_once = max(2, in_flight // count)
        firsts = range(0, self.users, per_swarm)
        self.swarms = [Swarm(self, number, first, min(per_swarm, self.users - first), at_once)
                       for number, first in enumerate(firsts)]

    def check_alive(self):
        for process in self.processes:
            if process.poll() is not None:
                raise servers.Unavailable(f"{process.args[0]} {process.args[1]} ended with {process.returncode}: "
                                          f"{self.last_words(process)}")

    def last_words(self, process):
        lines = (self.scratch / f"{self.names[process.pid]}.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "without a word"

    def kill_gateway(self, gateway):
        gateway.process.kill()
        gateway.process.wait()
        self.processes.remove(gateway.process)
        self.gateways.remove(gateway)

    def end_clients(self):
        """All clients go at once, as their process ends."""
        for swarm in self.swarms:
            swarm.process.stdin.close()
            swarm.process.wait()
            swarm.process.stdout.close()
            self.processes.remove(swarm.process)
        self.swarms = []

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

    # ---- sampling ----

    def ask_swarms(self, command):
        for swarm in self.swarms:
            swarm.request(command)
        return [swarm.answer() for swarm in self.swarms]

    def ready_count(self):
        return sum(answer["ready"] for answer in self.ask_swarms("ready"))

    def sample_clients(self):
        """The swarms' counts since the last sample, as one."""
        total = {"round_trips": {}, "slowest_us": [], "comebacks": []}
        for answer in self.ask_swarms("sample"):
            for us, count in answer.pop("round_trips_us"):
                total["round_trips"][us] = total["round_trips"].get(us, 0) + count
            total["slowest_us"] = merge(max, total["slowest_us"], answer.pop("slowest_us"))
            total["comebacks"] = merge(lambda a, b: a + b, total["comebacks"], answer.pop("comebacks"))
            for name, value in answer.items():
                total[name] = total.get(name, 0) + value
        return total

    def processors(self):
        return {
            "at": time.monotonic(),
            "gateways": sum(processor_seconds(gateway.process.pid) for gateway in self.gateways),
            "redis": sum(processor_seconds(process.pid) for process in self.redis_processes),
            "ledger": processor_seconds(self.ledger_process.pid),
            "clients": sum(processor_seconds(swarm.process.pid) for swarm in self.swarms),
        }

    def memory(self):
        gateways = [memory_of(gateway.process.pid) for gateway in self.gateways]
        infos = [store.info() for store in self.stores]
        return {
            **machine_memory(),
            "gateways_pss": sum(one["pss"] for one in gateways),
            "gateways_rss": sum(one["rss"] for one in gateways),
            "clients_pss": sum(memory_of(swarm.process.pid)["pss"] for swarm in self.swarms),
            "redis_used": sum(int(info["used_memory"]) for info in infos),
            "redis_rss": sum(int(info["used_memory_rss"]) for info in infos),
        }

    def metric(self, name):
        return sum(gateway.metrics().get(f"rollcall_{name}", 0) for gateway in self.gateways)

    def redis_counts(self):
        infos = [store.info() for store in self.stores]
        return {name: sum(int(info[field]) for info in infos)
                for name, field in (("commands", "total_commands_processed"), ("bytes_in", "total_net_input_bytes"),
                                    ("bytes_out", "total_net_output_bytes"))}


def merge(function, one, other):
    length = max(len(one), len(other))
    one = one + [0] * (length - len(one))
    other = other + [0] * (length - len(other))
    return [function(a, b) for a, b in zip(one, other)]


def quantile(counts, share):
    """Of a histogram as a dict; 0 if it is empty."""
    goal = share * sum(counts.values())
    seen = 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= goal:
            return value
    return 0


def difference(before, after):
    return {name: after[name] - before[name] for name in before}
