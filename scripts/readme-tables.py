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
    "ALLOC": "recorded and retried",
    "FREE": "gives memory back",
    "POOL": "pools, streams, captures",
    "CONTEXT": "start, contexts",
    "WATCH": "watched for error 2",
    "RESOLVE": "hands out pointers",
}


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


def entries_table():
    text = without_comments((ROOT / "src/cuda/entrypoints.def").read_text())
    rows = re.findall(r"^DRIVER\((\w+),\s*\w+,\s*\d+,\s*\w*,\s*(\w+)\)", text, flags=re.M)
    rows += re.findall(r"^RUNTIME\((\w+),\s*(\w+)\)", text, flags=re.M)
    lines = ["| what the hook does | functions |", "|---|---|"]
    for role, words in ROLES.items():
        names = [f"`{name}`" for name, its in rows if its == role]
        if names:
            lines.append(f"| {words} | {', '.join(names)} |")
    return lines


def with_table(readme, name, lines):
    begin, end = f"<!-- {name}: made by scripts/readme-tables.py -->", f"<!-- end of {name} -->"
    head, rest = readme.split(begin)
    _, tail = rest.split(end)
    return head + begin + "\n" + "\n".join(lines) + "\n" + end + tail


def main():
    old = README.read_text()
    new = with_table(old, "settings", options_table())
    new = with_table(new, "entry points", entries_table())
    if new == old:
        return 0
    if "--check" in sys.argv[1:]:
        print("README.md: its tables differ from the .def files: run scripts/readme-tables.py")
        return 1
    README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
