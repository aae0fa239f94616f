"""Compares captured Python stacks with the interpreter's own, frame by frame.

    python3 python_stack_shapes.py libpython_stack_probe.so

Runs on CPython 3.8 and later, standard library only.  Prints one JSON object:
for each shape how many frames were compared, and what differed.
"""
import asyncio
import contextlib
import ctypes
import functools
import json
import random
import signal
import sys
import threading
import traceback

# The probe is reached through both: the interpreter's lock given up, and held.
LIBRARIES = {"released": ctypes.CDLL(sys.argv[1]), "held": ctypes.PyDLL(sys.argv[1])}
DEEPEST = 64  # frames that a stack keeps
OUTERMOST = 8  # of a deeper one
NOT_KEPT = ("<not kept>", "", 0)
TOO_DEEP = DEEPEST + 512  # from here on the outermost are not looked for
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int)

results = {}
current = None
has_qualnames = sys.version_info >= (3, 11)


def name_of(code):
    return code.co_qualname if has_qualnames else code.co_name


def expected_stack(frame):
    """Newest first, as the traceback module walks it."""
    return [
        (f.f_code.co_filename, name_of(f.f_code), line)
        for f, line in traceback.walk_stack(frame)
    ]


def kept(frames):
    if len(frames) <= DEEPEST:
        return frames
    if len(frames) >= TOO_DEEP:
        return frames[:DEEPEST - 1] + [NOT_KEPT]
    return frames[:DEEPEST - OUTERMOST - 1] + [NOT_KEPT] + frames[-OUTERMOST:]


def captured_stack(library, buffer):
    count = library.probe_python(buffer, len(buffer))
    lines = buffer.value.decode("utf-8").split("\n")[:-1]
    assert count == len(lines), (count, len(lines))
    return [(f, n, int(l)) for f, n, l in (line.split("\t") for line in lines)]


def note(got, want):
    shape = results.setdefault(current, {"frames": 0, "stacks": 0, "wrong": []})
    shape["frames"] += len(want)
    shape["stacks"] += 1
    if got != want:
        shape["wrong"].append({"got": got, "want": want})


def check():
    """Capture here and compare: also the lines of everybody who called."""
    buffer = ctypes.create_string_buffer(1 << 16)
    for library in LIBRARIES.values():
        # fmt: off
        got, want = captured_stack(library, buffer), expected_stack(sys._getframe())
        # fmt: on
        # captured_stack is itself the newest frame of the capture.
        assert got[0][1] == "captured_stack", got[0]
        note(got[1:], kept(got[:1] + want)[1:])
    return 1


shapes = []


def shape(function):
    shapes.append(function)
    return function


@shape
def nested_functions():
    def outer(depth):
        def inner():
            return check()

        return inner() if depth == 0 else outer(depth - 1)

    outer(7)


@shape
def deeper_than_is_kept():
    def down(depth):
        return check() if depth == 0 else down(depth - 1)

    for depth in (54, 55, 56, 57, 58, 61, 62, 63, 64, 65, 70, 200, 570, 571, 572, 573, 574, 600):
        down(depth)


@shape
def generators():
    def leaf():
        yield check()
        yield check()

    def middle():
        yield from leaf()
        yield check()

    assert sum(middle()) == 3
    assert [x for x in (check() for _ in range(2))] == [1, 1]
    paused = leaf()
    next(paused)
    check()
    list(paused)


@shape
def coroutines():
    async def leaf():
        check()
        await asyncio.sleep(0)
        return check()

    async def numbers():
        for i in range(2):
            await asyncio.sleep(0)
            check()
            yield i

    async def main():
        await asyncio.gather(leaf(), leaf())
        async for _ in numbers():
            check()

    asyncio.run(main())


@shape
def threads():
    def work(name):
        for _ in range(3):
            check()

    for i in range(4):
        thread = threading.Thread(target=work, args=(i,))
        thread.start()
        thread.join()


@shape
def lambdas_and_partials():
    (lambda f: f())(lambda: check())
    functools.partial(lambda *a: check(), 1)(2)
    sorted([2, 1], key=lambda x: check())
    list(map(lambda x: check(), range(2)))


@shape
def classes_and_protocols():
    class Thing:
        check()

        def __init__(self):
            check()

        @property
        def value(self):
            return check()

        def __add__(self, other):
            return check()

        def __enter__(self):
            check()

        def __exit__(self, *_):
            check()

        def __del__(self):
            check()

        @classmethod
        def make(cls):
            check()
            return cls()

        @staticmethod
        def plain():
            return check()

        def __getattr__(self, name):
            return check()

    thing = Thing.make()
    thing.value + thing.missing
    thing + thing
    Thing.plain()
    with thing:
        check()
    del thing


@shape
def decorators_and_contexts():
    def twice(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            function(*args, **kwargs)
            return function(*args, **kwargs)

        return wrapper

    @contextlib.contextmanager
    def context():
        check()
        yield
        check()

    @twice
    def decorated(*, key):
        with context():
            return check()

    decorated(key=1)


@shape
def calls_over_many_lines():
    def take(*args):
        return len(args)

    take(
        1,
        check(),
        take(
            check(),
            [
                check()
                for _ in range(2)
            ],
        ),
        check()
        + check(),
    )
    try:
        check()
        raise ValueError
    except ValueError:
        check()
    finally:
        check()
    for _ in range(2):
        if check():
            continue
    while check():
        break


@shape
def executed_source():
    for i in range(20):
        lines = "\n" * i
        exec(compile(lines + "def made():\n  return check()\nmade()", "<made %d>" % i, "exec"),
             {"check": check})
        eval(compile(lines + "check()", "<evaluated %d>" % i, "eval"), {"check": check})


@shape
def reused_code_objects():
    """Code objects that die and give their place to others of the same outline."""
    for i in range(300):
        name = "function_%03d" % i
        space = {"check": check}
        exec("def %s():\n    return check()\n" % name, space)
        space.pop(name)()


@shape
def names_beyond_ascii():
    source = "def {0}():\n    return check()\n{0}()\n"
    names = ["caf\u00e9", "\u65e5\u672c\u8a9e", "\U00020000\u65e5", "gr\u00fc\u00df"]
    files = ["caf\u00e9.py", "\u65e5\u672c.py", "\U0001f40d snake.py", "a" * 300 + ".py"]
    for name, file in zip(names, files):
        exec(compile(source.format(name), file, "exec"), {"check": check})


@shape
def native_frames_between():
    def recurse(depth):
        def called():
            return check() if depth == 0 else recurse(depth - 1)

        return LIBRARIES["released"].probe_call(CALLBACK(called))

    recurse(3)


@shape
def signal_handlers():
    signal.signal(signal.SIGUSR1, lambda *_: check())
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)


@shape
def profiled_and_traced():
    def work():
        return check()

    sys.settrace(lambda *_: None)
    work()
    sys.settrace(None)
    sys.setprofile(lambda *_: None)
    work()
    sys.setprofile(None)


@shape
def hot_code():
    """The interpreter rewrites instructions that run often."""

    def leaf(i):
        x = i * 2
        return check() if i % 40 == 39 else x

    def loop():
        total = 0
        for i in range(400):
            total += leaf(
                i
            )
        return total

    loop()


def random_source(rng):
    """Functions with gaps, long calls and long bodies, each ending in a check."""
    lines, names = [], []
    for number in range(6):
        lines += [""] * rng.choice([0, 1, 3, 130, 300])
        lines.append("def f%d(k):" % number)
        for _ in range(rng.randrange(60)):
            lines += [""] * rng.choice([0, 0, 0, 2, 140])
            lines.append(rng.choice([
                "    a = k + %d" % rng.randrange(1 << 20),
                "    a = [\n        k,\n\n        k,\n    ]",
                "    if k == %d:\n        a = k\n    else:\n        a = 2" % rng.randrange(9),
                "    for a in range(2):\n        a = (a\n             + k)",
                "    a = '%s'" % ("x" * rng.randrange(90)),
                "    try:\n        a = k\n    finally:\n        a = 1",
                "    a = (lambda:\n         k)()",
            ]))
        callee = "f%d(k)" % (number - 1) if number else "check()"
        lines += [""] * rng.choice([0, 5, 200])
        lines.append(rng.choice([
            "    return %s" % callee,
            "    return max(\n        1,\n        %s,\n\n        2)" % callee,
            "    return [\n\n\n\n        %s\n        for _ in '.'][0]" % callee,
            "    with suppress():\n\n        return (1 +\n                %s)" % callee,
        ]))
        names.append("f%d" % number)
    return "\n".join(lines) + "\n%s(1)\n" % names[-1]


@shape
def random_programs():
    rng = random.Random(20)
    for number in range(60):
        code = compile(random_source(rng), "<random %d>" % number, "exec")
        exec(code, {"check": check, "suppress": contextlib.suppress})


def main():
    global current
    library = LIBRARIES["held"]
    for name in ("version", "unsupported", "unwinder"):
        getattr(library, "probe_" + name).restype = ctypes.c_char_p
    library.probe_open()
    told = {
        "version": library.probe_version().decode(),
        "unsupported": library.probe_unsupported(),
        "unwinder": library.probe_unwinder().decode(),
    }
    for function in shapes:
        current = function.__name__
        function()
    print(json.dumps({"told": told, "shapes": results}))


if __name__ == "__main__":
    main()
