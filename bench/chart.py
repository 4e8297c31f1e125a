"""docs/bench.svg: one group of bars per job, one bar per server, each job on its own scale.

Drawn by hand, without a library, and readable on light and on dark pages.
"""

import html

import jobs as job_table
import report
import servers

CHARTED = ("idle", "echo-100", "echo-1000", "fanout", "connect")
WIDTH, LEFT, RIGHT = 760, 176, 150
BAR, GAP, TITLE, GROUP_GAP, TOP, BOTTOM = 15, 4, 22, 16, 62, 40

COLOURS = {  # light page, dark page
    "floor": ("#8c959f", "#768390"),
    "rollcall": ("#1a7f37", "#46c266"),
    "rollcall-socketio": ("#0d6e8a", "#4fb3d0"),
    "ws": ("#bf8700", "#d9a62e"),
    "socketio": ("#a0446b", "#d27da0"),
}


def style():
    light = "".join(f".{name}{{fill:{light}}}" for name, (light, _) in COLOURS.items())
    dark = "".join(f".{name}{{fill:{dark}}}" for name, (_, dark) in COLOURS.items())
    return (
        "<style>text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}"
        ".title{font-size:16px;font-weight:600}.job{font-weight:600}"
        ".small{fill:#59636e;font-size:12px}"
        f".axis{{stroke:#d1d9e0}}.limit{{stroke:#cf222e;stroke-width:2}}{light}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}"
        f".axis{{stroke:#3d444d}}.limit{{stroke:#ff7b72}}{dark}}}</style>"
    )


def text(x, y, content, kind="", anchor="start"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
            f"{html.escape(content)}</text>")


def bars_of(results, job):
    return [(server, results.median(job, server.name)) for server in servers.ALL
            if results.median(job, server.name) is not None]


def limit_of(results, job):
    """The limit of Rollcall's cost in this job, in its unit; 0 if there is none."""
    if job.value_max is not None:
        return job.value_max
    return (job.ratio_max or 0) * (results.median(job, "floor") or 0)


def bar(results, job, server, value, limit, scale, y):
    """A bar and its label; with a limit, also the mark that it must not exceed."""
    ratio = results.ratio(job, server.name)
    label = f"{report.number(value)} {job.unit}"
    if server.name != "floor" and ratio is not None:
        label += f"  ({report.number(ratio)} ×)"
    parts = [
        text(LEFT - 10, y + BAR - 3, server.title, "small", "end"),
        f'<rect class="{server.name}" x="{LEFT}" y="{y}" width="{max(value * scale, 1):.1f}" '
        f'height="{BAR}" rx="2"/>',
        text(LEFT + max(value, limit) * scale + 7, y + BAR - 3, label, "small"),
    ]
    if limit > 0:
        x = LEFT + limit * scale
        parts.append(f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" '
                     f'y1="{y - 1}" y2="{y + BAR + 1}"/>')
    return parts


def group(results, job, y):
    """One job: its title and its bars, on a scale of its own."""
    bars = bars_of(results, job)
    limit = limit_of(results, job)
    scale = (WIDTH - LEFT - RIGHT) / max([limit, *(value for _, value in bars)])
    parts = [text(0, y + 12, job.title[0].upper() + job.title[1:], "job")]
    y += TITLE
    end = y + len(bars) * (BAR + GAP)
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{y - 3}" y2="{end}"/>')
    for server, value in bars:
        own_limit = limit if server.name == "rollcall" else 0
        parts += bar(results, job, server, value, own_limit, scale, y)
        y += BAR + GAP
    return parts, end + GROUP_GAP


def draw(results, facts):
    parts, y = [], TOP
    for job in job_table.ALL:
        if job.name in CHARTED and bars_of(results, job):
            drawn, y = group(results, job, y)
            parts += drawn
    height = y + BOTTOM - GROUP_GAP
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 0 {WIDTH + 24} {height}" '
        'role="img" aria-label="What a connection, a heartbeat, a delivery and a connect cost">',
        style(),
        text(0, 24, "What each server costs for the same work (shorter is better)", "title"),
        text(0, 43, "one core, one worker; (×) is the multiple of the floor; "
                    "the red mark is Rollcall's limit", "small"),
    ]
    foot = [text(0, height - 12, f"{facts['date']}, {facts['machine']}", "small"), "</svg>"]
    return "\n".join(head + parts + foot) + "\n"
