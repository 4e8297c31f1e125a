"""docs/bench.svg: one group of bars per job, each bar a server, its length the multiple of the floor.

Drawn by hand, without a library, and readable on light and on dark pages.
"""

import html

import jobs as job_table
import report
import servers

CHARTED = ("idle", "echo-100", "echo-1000", "fanout", "connect")
WIDTH, LEFT, RIGHT = 760, 176, 150
BAR, GAP, GROUP_GAP, TOP, BOTTOM = 15, 4, 34, 54, 40

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
        ".title{font-size:16px;font-weight:600}.job{font-weight:600}.small{fill:#59636e;font-size:12px}"
        f".axis{{stroke:#d1d9e0}}.limit{{stroke:#cf222e;stroke-width:2;stroke-dasharray:3 2}}{light}"
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
    """The most Rollcall may cost in this job, in its unit."""
    if job.value_max is not None:
        return job.value_max
    floor = results.median(job, "floor")
    return job.ratio_max * floor if job.ratio_max is not None and floor else None


def bar(results, job, server, value, scale, y):
    ratio = results.ratio(job, server.name)
    label = f"{report.number(value)} {job.unit}"
    if server.name != "floor" and ratio is not None:
        label += f"  ({report.number(ratio)} ×)"
    return [
        text(LEFT - 10, y + BAR - 3, server.title, "small", "end"),
        f'<rect class="{server.name}" x="{LEFT}" y="{y}" width="{max(value * scale, 1):.1f}" '
        f'height="{BAR}" rx="2"/>',
        text(LEFT + value * scale + 7, y + BAR - 3, label, "small"),
    ]


def group(results, job, y):
    """One job: its title, its bars on a scale of its own, and the limit as a dashed line."""
    bars = bars_of(results, job)
    limit = limit_of(results, job)
    longest = max([value for _, value in bars] + [limit or 0])
    scale = (WIDTH - LEFT - RIGHT) / longest
    parts = [text(0, y + 12, job.title[0].upper() + job.title[1:], "job")]
    y += 22
    end = y + len(bars) * (BAR + GAP)
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{y - 3}" y2="{end}"/>')
    for server, value in bars:
        parts += bar(results, job, server, value, scale, y)
        y += BAR + GAP
    if limit is not None:
        x = LEFT + limit * scale
        parts.append(f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{end - len(bars) * (BAR + GAP) - 4}" '
                     f'y2="{end}"/>')
    return parts, end + GROUP_GAP - GAP


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
                    "the dashed line is what Rollcall must stay under", "small"),
    ]
    foot = [text(0, height - 12, f"{facts['date']}, {facts['machine']}", "small"), "</svg>"]
    return "\n".join(head + parts + foot) + "\n"
