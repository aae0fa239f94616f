"""Compares our reading of line tables with the interpreter's, over its own library.

    python3 python_stack_lines.py libpython_stack_probe.so

Every instruction of every function of some hundred modules.  Prints one JSON
object: how many instructions were compared, and what differed.
"""
import ctypes
import dis
import glob
import json
import os
import sys

LIBRARY = ctypes.CDLL(sys.argv[1])
LIBRARY.probe_line.argtypes = [
    ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint32
]
UNIT = 2


def table_of(code):
    """The format's number in python_lines.h, and the table."""
    if sys.version_info >= (3, 11):
        return 2, code.co_linetable
    if sys.version_info >= (3, 10):
        return 1, code.co_linetable
    return 0, code.co_lnotab


def lines_of(code):
    """(offset, line) of each instruction; the line is None where there is none."""
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            for offset in range(start, end, UNIT):
                yield offset, line
        return
    starts = dict(dis.findlinestarts(code))
    line = code.co_firstlineno
    for offset in range(0, len(code.co_code), UNIT):
        line = starts.get(offset, line)
        yield offset, line


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from codes_in(constant)


def main():
    compared, wrong = 0, []
    folder = os.path.dirname(os.__file__)
    files = sorted(glob.glob(folder + "/*.py") + glob.glob(folder + "/asyncio/*.py"))
    for path in files[::2]:
        with open(path, "rb") as file:
            module = compile(file.read(), path, "exec")
        for code in codes_in(module):
            form, table = table_of(code)
            for offset, line in lines_of(code):
                got = LIBRARY.probe_line(form, table, len(table), code.co_firstlineno, offset)
                want = code.co_firstlineno if line is None else line
                compared += 1
                if got != want:
                    wrong.append((path, code.co_name, offset, got, want))
    print(json.dumps({"compared": compared, "wrong_count": len(wrong), "wrong": wrong[:10]}))


main()
