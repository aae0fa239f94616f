#!/usr/bin/env python3
"""Write the README's tables of settings and entry points from the .def files.

With --check, nothing is written; exit status 1 says that they differ.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = ROOT / "README.md"

ROLES = {
    "ALLOC": "tracked: makes a record; a failure may be repeated after recovery",
    "FREE": "tracked: ends a record",
    "POOL": "tracked: pools, streams, captures and graphs that memory belongs to",
    "CONTEXT": "tracked: start, and contexts, with which memory ends",
    "KEEP": "tracked: takes a graph's memory, or maps memory into an array; error 2 is treated as a "
            "failed allocation",
    "WATCH": "only watched: passes through; error 2 is treated as a failed allocation",
    "TELL": "says how much memory there is: as much as `GPUOOMSHIM_LIMIT` leaves, where it is set",
    "RESOLVE": "hands out pointers, which become ours",
}

SHOWN = 16  # of the functions left alone for one reason


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def options_table():
    text = without_comments((ROOT / "src/base/options.def").read_text())
    strings = r'((?:"[^"]*"\s*)+)'
    row = re.compile(rf"OPTION\((\w+),\s*(\w+),\s*(\w+),\s*{strings},\s*{strings},\s*{strings}\)")
    lines = ["| variable | values | default | |", "|---|---|---|---|"]
    for match in row.finditer(text):
        fallback, values, words = ("".join(re.findall(r'"([^"]*)"', part))
                                   for part in match.groups()[3:])
        values = values.replace("|", " \\| ")
        lines.append(f"| `GPUOOMSHIM_{match[2]}` | {values} | {f'`{fallback}`' if fallback else ''} "
                     f"| {words} |")
    return lines


def grouped(symbols):
    """`name` and the endings of its other ABIs: `cuMemAlloc` `_v2`, …"""
    groups = {}
    for symbol in symbols:
        base = re.match(r"(.+?)((?:_v\d)?(?:_pts[dz])?)$", symbol)
        groups.setdefault(base[1], []).append(base[2])
    words = []
    for base, endings in groups.items():
        first, *others = sorted(endings)
        words.append(" ".join([f"`{base}{first}`"] + [f"`{ending}`" for ending in others]))
    return ", ".join(words)


def torch_row():
    """torch's functions, as a programmer writes them."""
    text = without_comments((ROOT / "src/shim/torch_word.def").read_text())
    names = re.findall(r"^TORCH_WORD\(\w+, _ZN3c10\d+(report\w+ToProfiler)E", text, flags=re.M)
    functions = ", ".join(f"`c10::{name}`" for name in dict.fromkeys(names))
    return f"| listened to: torch's own word of its blocks and refusals (1.13 and 2.x) | {functions} |"


def entries_table():
    text = without_comments((ROOT / "src/cuda/entrypoints.def").read_text())
    rows = re.findall(r"^DRIVER\((\w+),\s*\w+,\s*\d+,\s*\w*,\s*(\w+)\)", text, flags=re.M)
    rows += re.findall(r"^RUNTIME\((\w+),\s*(\w+)\)", text, flags=re.M)
    lines = ["| what the hook does | functions |", "|---|---|"]
    for role, words in ROLES.items():
        lines.append(f"| {words} | {grouped(name for name, its in rows if its == role)} |")
    lines.append(torch_row())
    reasons = {}
    for name, why in re.findall(r'^ALONE\(([\w*]+),\s*"([^"]*)"\)', text, flags=re.M):
        reasons.setdefault(why, []).append(name)
    lines += ["", "| left alone, because | functions |", "|---|---|"]
    for why, names in reasons.items():
        more = len(names) - SHOWN
        rest = f" and {more} more, see `src/cuda/entrypoints.def`" if more > 0 else ""
        lines.append(f"| {why} | {grouped(names[:SHOWN])}{rest} |")
    return lines


def with_table(readme, name, lines):
    begin, end = f"<!-- {name}: made by scripts/readme-tables.py -->", f"<!-- end of {name} -->"
    head, rest = readme.split(begin)
    _, tail = rest.split(end)
    return head + begin + "\n" + "\n".join(lines) + "\n" + end + tail


def tables():
    yield "settings", options_table()
    yield "entry points", entries_table()


def main():
    old = new = README.read_text()
    for table, lines in tables():
        new = with_table(new, table, lines)
    if new == old:
        return 0
    if "--check" in sys.argv[1:]:
        print("README.md: a table differs from its .def file: run scripts/readme-tables.py")
        return 1
    README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
