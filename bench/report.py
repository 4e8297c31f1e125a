"""The tables for the terminal and for docs/BENCHMARKS.md."""

import json
import platform
import subprocess

import durable
import jobs as job_table
import servers

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
VERDICTS = {True: "PASS", False: "over", None: "–"}


def number(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(results, job, server):
    value = results.median(job, server)
    if value is None:
        return "–"
    text = f"{number(value)} {job.unit}"
    ratio = results.ratio(job, server)
    if ratio is not None and server != "floor":
        text += f" ({number(ratio)} ×)"
    spread = results.spread(job, server)
    return text if spread is None else f"{text} ±{spread:.0%}"


def rows(results):
    yield ["job", *(server.title for server in servers.ALL), "Rollcall should", "does"]
    for job in job_table.ALL:
        if not any(results.samples(job, server.name) for server in servers.ALL):
            continue
        verdicts = results.verdicts(job)
        yield [job.title, *(cell(results, job, server.name) for server in servers.ALL),
               "; ".join(text for text, _ in verdicts) or "–",
               ", ".join(VERDICTS[reached] for _, reached in verdicts) or "–"]


def table(results):
    return aligned(rows(results))


def aligned(rows_given):
    lines = list(rows_given)
    widths = [max(map(len, column)) for column in zip(*lines)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip()
                     for line in lines)


def markdown(results):
    return markdown_table(rows(results), ["---", *["---:"] * len(servers.ALL), "---", "---"])


def markdown_table(rows_given, alignment=None):
    lines = list(rows_given)
    lines.insert(1, alignment or ["---", *["---:"] * (len(lines[0]) - 1)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def durable_tables(answers):
    """The tables of acknowledged messages, for the terminal."""
    return "".join(f"\n{title}\n\n{aligned(lines)}\n" for title, lines in durable.tables(answers))


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    return f"{len(models)} × {model}, Linux {platform.release()}"


def versions():
    """The peers' versions, as installed."""
    found = {}
    for package in ("ws", "socket.io"):
        path = servers.PEERS / "node_modules" / package / "package.json"
        if path.exists():
            found[package] = json.loads(path.read_text())["version"]
    if found:
        node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
        found["node"] = node.stdout.strip().lstrip("v")
    return found


def write_document(path, results, durable_answers, facts):
    peers = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    measured = "\n\n".join([
        BEGIN,
        markdown(results),
        *(f"### {title}\n\n{markdown_table(lines)}"
          for title, lines in durable.tables(durable_answers)),
        f"Measured on {facts['date']} on {facts['machine']}, with `{facts['command']}`"
        + (f"; {peers}." if peers else "."),
        END,
    ])
    text = path.read_text()
    head, rest = text.split(BEGIN)
    path.write_text(head + measured + rest.split(END)[1])
