"""The cost of acknowledged messages: through the ledger, and through the whole server.

Two programs measure: ledger_bench compares the ledger with plain SQLite on the same disk; messages
drives a server through the C client. This module runs them and makes their tables.
"""

import json
import pathlib
import subprocess
import tempfile
import urllib.request

import servers

SENDERS = (1, 16, 256, 2000)
MEMBERS = 10
RATIO_MIN, RATIO_SENDERS_MIN = 0.6, 256
GROWTH_MAX = 1.25  # of a page's time and of the time per message, from a short chat to a long one
SHORT_CHAT, LONG_CHAT = 1000, 1_000_000
NAMES = ("ledger", "messages")


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


# The ledger


def run_ledger(build, niceness, seconds, messages):
    """Uses the disk of the build, because a scratch directory may be in memory."""
    with tempfile.TemporaryDirectory(prefix="ledger-bench-", dir=build) as folder:
        done = subprocess.run([build / "bench" / "ledger_bench", folder, str(seconds),
                               str(messages)], capture_output=True, text=True, check=True,
                              preexec_fn=servers.child_setup(None, niceness))
    return json_lines(done.stdout)


def measure_ledger(build, niceness, quick):
    seconds = 0.5 if quick else 3
    return {"short": run_ledger(build, niceness, seconds, SHORT_CHAT),
            "long": run_ledger(build, niceness, seconds, LONG_CHAT)}


def split(lines):
    """The page times, and the steps by their number of senders."""
    return lines[0], {line["senders"]: line for line in lines[1:]}


def ledger_verdicts(answers):
    _, short = split(answers["short"])
    return [short[senders]["ratio"] >= RATIO_MIN
            for senders in SENDERS if senders >= RATIO_SENDERS_MIN] + \
           [growth <= GROWTH_MAX for growth in growths(answers).values()]


def growths(answers):
    """How much longer each operation takes in the long chat."""
    (short_pages, short), (long_pages, long) = split(answers["short"]), split(answers["long"])
    found = {name: long_pages[f"{name}_page_us"] / short_pages[f"{name}_page_us"]
             for name in ("first", "middle", "last")}
    # relative to plain SQLite, which is measured at the same time, so that drift does not count
    found["send"] = short[RATIO_SENDERS_MIN]["ratio"] / long[RATIO_SENDERS_MIN]["ratio"]
    return found


def ledger_rows(answers):
    yield ["senders", "acknowledged/s", "plain SQLite/s", "ratio", "p99",
           "processor", "plain's", "should", "does"]
    _, short = split(answers["short"])
    for senders, line in short.items():
        wanted = senders >= RATIO_SENDERS_MIN
        yield [f"{senders:,}", f"{line['acknowledged_per_second']:,}",
               f"{line['plain_per_second']:,}", f"{line['ratio']:.2f}", f"{line['p99_ms']:.1f} ms",
               f"{line['cpu_us']:.1f} µs", f"{line['plain_cpu_us']:.1f} µs",
               f"≥ {RATIO_MIN:g}" if wanted else "–",
               "–" if not wanted else "PASS" if line["ratio"] >= RATIO_MIN else "under"]


def length_rows(answers):
    yield ["in a chat of", f"{SHORT_CHAT:,}", f"{LONG_CHAT:,}", "grows", "should", "does"]
    (short_pages, short), (long_pages, long) = split(answers["short"]), split(answers["long"])
    growth = growths(answers)
    for name in ("first", "middle", "last"):
        yield [f"{name} page of 100", f"{short_pages[f'{name}_page_us']} µs",
               f"{long_pages[f'{name}_page_us']} µs", *growth_cells(growth[name])]
    yield [f"sends, of plain SQLite's, {RATIO_SENDERS_MIN} senders",
           f"{short[RATIO_SENDERS_MIN]['ratio']:.2f}", f"{long[RATIO_SENDERS_MIN]['ratio']:.2f}",
           *growth_cells(growth["send"])]


def growth_cells(growth):
    return [f"{growth:.2f} ×", f"≤ {GROWTH_MAX:g} ×", "PASS" if growth <= GROWTH_MAX else "over"]


# The whole server


class Messenger(servers.Rollcall):
    """Rollcall with the limit on a sender's messages lifted as well, on the build's disk."""

    name = "messages"

    def command(self, port):
        rates = ("rate_limit_per_second", "rate_limit_burst")
        return [*super().command(port),
                *(f"--set=gateway.backpressure.inbound.{rate}=1000000" for rate in rates)]

    def make_chat(self, port, token, chat, members):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/chats", method="POST",
            data=json.dumps({"chat_id": chat, "members": members}).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=30).close()

    def measure(self, senders, seconds):
        users = -(-senders // MEMBERS) * MEMBERS
        path, _ = self.tokens(users)
        tokens = path.read_text().split()
        with self.running() as (process, port):
            for first in range(0, users, MEMBERS):
                names = [f"bench{number}" for number in range(first, first + MEMBERS)]
                self.make_chat(port, tokens[first], f"m{senders}-{first // MEMBERS}", names)
            done = subprocess.run(
                [self.build / "bench" / "messages", "--port", str(port), "--pid", str(process.pid),
                 "--tokens", path, "--chat", f"m{senders}-", "--senders", str(senders),
                 "--members", str(MEMBERS), "--seconds", str(seconds)],
                capture_output=True, text=True,
                preexec_fn=servers.child_setup(servers.LOAD_CORE, self.niceness))
        if done.returncode != 0:
            raise servers.Unavailable(done.stderr.strip())
        return json.loads(done.stdout)


def measure_messages(build, niceness, quick):
    with tempfile.TemporaryDirectory(prefix="messages-bench-", dir=build) as folder:
        server = Messenger(build, pathlib.Path(folder), niceness)
        server.prepare()
        return [server.measure(senders, 1 if quick else 5) for senders in SENDERS]


def message_rows(answers):
    yield ["senders", "acknowledged/s", "delivered/s", "ack p50", "ack p99", "delivery p99",
           "processor/message"]
    for line in answers:
        yield [f"{line['senders']:,}", f"{line['acknowledged_per_second']:,}",
               f"{line['delivered_per_second']:,}", f"{line['ack_p50_ms']:.1f} ms",
               f"{line['ack_p99_ms']:.1f} ms", f"{line['delivery_p99_ms']:.1f} ms",
               f"{line['cpu_us_per_message']:.0f} µs"]


# Both


def measure(build, niceness, quick, wanted, note):
    """The answers of the wanted NAMES that can be measured here."""
    found = {}
    for name in wanted:
        try:
            note(f"  {name}")
            run = measure_ledger if name == "ledger" else measure_messages
            found[name] = run(build, niceness, quick)
        except (servers.Unavailable, OSError, subprocess.CalledProcessError) as error:
            note(f"bench: {name} is left out: {error}")
    return found


def tables(answers):
    """Title and rows of each table."""
    if "ledger" in answers:
        yield "Acknowledged messages through the ledger", list(ledger_rows(answers["ledger"]))
        yield "Long chats", list(length_rows(answers["ledger"]))
    if "messages" in answers:
        yield (f"Messages through the server, chats of {MEMBERS}",
               list(message_rows(answers["messages"])))


def verdicts(answers):
    return ledger_verdicts(answers["ledger"]) if "ledger" in answers else []
