#!/usr/bin/env python3
"""Writes a C file that holds the given files: embed.py OUTPUT PATH=FILE..."""
import sys
from pathlib import Path

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


def main() -> None:
    output, pairs = sys.argv[1], [argument.split("=", 1) for argument in sys.argv[2:]]
    lines = ['#include "rest/assets.h"', ""]
    rows = []
    for index, (path, file) in enumerate(pairs):
        data = Path(file).read_bytes()
        lines.append(f"static const unsigned char asset_{index}[] = {{")
        for start in range(0, len(data), 20):
            lines.append("    " + ", ".join(str(byte) for byte in data[start : start + 20]) + ",")
        lines.append("    0};")
        kind = TYPES[Path(file).suffix]
        rows.append(f'    {{"{path}", "{kind}", asset_{index}, sizeof(asset_{index}) - 1}},')
    lines += ["", "const struct asset ASSETS[] = {", *rows, "    {0},", "};", ""]
    Path(output).write_text("\n".join(lines))


main()
