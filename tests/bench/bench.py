#!/usr/bin/env python3
"""What the library costs, in one process with the bare driver.

    LD_PRELOAD=libgpuoomshim.so bench.py LIBRARY BENCH PART

LIBRARY is the preloaded file, BENCH the folder of libbench.so.  Variants take
turns batch by batch; what is printed are medians over the batches, the added
time as the median of the differences within a turn.

The stack setting is changed between batches by writing into the library's
settings, which are found through its symbol table: nothing but this does so.
"""
import ctypes
import os
import pathlib
import statistics
import struct
import sys

OFF, NATIVE, PYTHON, BOTH = range(4)
BARE, GIVEN = range(2)
NATIVE_FRAMES, PYTHON_FRAMES = 40, 20
DEVICE, DEFAULT, CREATED, LAUNCH = range(4)


def symbol_offset(path, name):
    """Value of a symbol in the full symbol table of an ELF file."""
    data = pathlib.Path(path).read_bytes()
    at, = struct.unpack_from("<Q", data, 40)
    entry_bytes, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * entry_bytes) for i in range(count)]
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        names = sections[section[6]][4]
        for symbol in range(section[4], section[4] + section[5], 24):
            name_at, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, symbol)
            start = names + name_at
            if data[start:start + len(name) + 1] == name.encode() + b"\0":
                return value
    raise SystemExit(f"bench: no {name} in {path}: was it stripped?")


def base_of(path):
    """Where the file is mapped in this process."""
    real = os.path.realpath(path)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            if line.rstrip().endswith(real):
                return int(line.split("-")[0], 16)
    raise SystemExit(f"bench: {path} is not preloaded")


class Bench:
    def __init__(self, library, folder):
        self.options = ctypes.c_void_p(base_of(library) + symbol_offset(library, "gos_options"))
        self.folder = pathlib.Path(folder).resolve()
        self.lib = ctypes.CDLL(str(self.folder / "libbench.so"))
        for name in ("batch", "pairs_per_second", "live_bytes", "report_ms", "survived_us"):
            getattr(self.lib, f"bench_{name}").restype = ctypes.c_double
        code = self.lib.bench_start()
        if code:
            sys.exit(code)

    def stack(self, setting, sample_bytes=0):
        self.lib.bench_stack_setting(self.options, setting, ctypes.c_uint64(sample_bytes))

    def batch(self, task, variant, count):
        self.stack(variant.stack, variant.sample_bytes)
        return self.lib.bench_batch(task, variant.which, count, variant.frames, variant.stacks)


class Variant:
    def __init__(self, name, stack=OFF, which=GIVEN, frames=0, stacks=1, sample_bytes=0,
                 against=None):
        self.name, self.stack, self.which = name, stack, which
        self.sample_bytes = sample_bytes  # GPUOOMSHIM_STACK_SAMPLE
        self.frames, self.stacks = frames, stacks  # so many take turns; 0: each is a new one
        self.against = against  # the variant that it is compared with


def nested(frames, work):
    """work(), from so many Python frames deep."""
    return work() if frames <= 1 else nested(frames - 1, work)


def python_depth():
    frame, depth = sys._getframe(), 0
    while frame:
        frame, depth = frame.f_back, depth + 1
    return depth


def in_turns(bench, task, variants, count, turns):
    """Nanoseconds of each variant in each turn; the order turns round, too."""
    times = {variant: [] for variant in variants}
    for variant in variants:
        bench.batch(task, variant, count)
    for turn in range(turns):
        start = turn % len(variants)
        for variant in variants[start:] + variants[:start]:
            times[variant].append(bench.batch(task, variant, count))
    return times


def verdict(value, limit, kind="at most"):
    met = value <= limit if kind == "at most" else value >= limit
    return "met" if met else "MISSED"


def line(name, figures, budget=""):
    print(f"  {name:<24} {figures:<48} {budget}", flush=True)


def compare(bench, title, task, variants, count, turns, budgets):
    """budgets: variant name -> (limit, what it limits: "ns" or "ratio")."""
    print(title)
    times = in_turns(bench, task, variants, count, turns)
    for variant in variants:
        median = statistics.median(times[variant])
        if variant.against is None:
            line(variant.name, f"{median:10.1f} ns")
            continue
        pairs = list(zip(times[variant], times[variant.against]))
        added = statistics.median(mine - other for mine, other in pairs)
        ratio = statistics.median(mine / other for mine, other in pairs)
        budget = ""
        if variant.name in budgets:
            limit, what = budgets[variant.name]
            words = f"+{limit} ns" if what == "ns" else f"x {limit}"
            budget = f"budget {words}: {verdict(added if what == 'ns' else ratio, limit)}"
        line(variant.name, f"{median:10.1f} ns {added:+10.1f} ns  x {ratio:.3f}", budget)


def repeated_variants(bare):
    return [Variant("tracked, no stack", OFF, against=bare),
            Variant("native stack", NATIVE, frames=NATIVE_FRAMES, against=bare),
            Variant("Python stack", PYTHON, frames=NATIVE_FRAMES, against=bare),
            Variant("both, seen before", BOTH, frames=NATIVE_FRAMES, against=bare)]


def measure_pairs(bench, on_device):
    turns = 61
    bare = Variant("bare", which=BARE, frames=NATIVE_FRAMES)
    ratio = {"both, seen before": (1.03, "ratio")} if on_device else {}
    compare(bench, "cuMemAlloc+cuMemFree, 2 MiB", DEVICE, [bare] + repeated_variants(bare),
            200 if on_device else 2000, turns, ratio)
    for name, task in (("the thread's default", DEFAULT), ("a created", CREATED)):
        compare(bench, f"cuMemAllocAsync+cuMemFreeAsync, 1 MiB, on {name} stream", task,
                [bare] + repeated_variants(bare) +
                [Variant("both, one of 64 MiB", BOTH, frames=NATIVE_FRAMES,
                         sample_bytes=64 << 20, against=bare)], 2000, turns,
                {"tracked, no stack": (80, "ns"), "both, seen before": (150, "ns")})
    for stacks in (8, 64, 512):
        turn_about = Variant("bare", which=BARE, frames=NATIVE_FRAMES, stacks=stacks)
        compare(bench, f"the same, {stacks} stacks in turn", DEFAULT,
                [turn_about] + [Variant(name, stack, frames=NATIVE_FRAMES, stacks=stacks,
                                        against=turn_about)
                                for name, stack in (("native stack", NATIVE),
                                                    ("both, seen before", BOTH))],
                1024, turns, {"both, seen before": (150, "ns")})
    fresh = Variant("bare, each from elsewhere", which=BARE, frames=NATIVE_FRAMES, stacks=0)
    compare(bench, "the same, every stack a new one", DEFAULT,
            [fresh] + [Variant(name, stack, frames=NATIVE_FRAMES, stacks=0, against=fresh)
                       for name, stack in (("native, never seen", NATIVE),
                                           ("both, never seen", BOTH))],
            400, 41, {"both, never seen": (1200, "ns")})
    compare(bench, "cuLaunchKernel of an empty kernel", LAUNCH,
            [bare, Variant("watched", against=bare)], 500 if on_device else 5000, turns,
            {"watched": (5, "ns")})


def part_pairs(bench, on_device):
    print(f"(stacks of {NATIVE_FRAMES} native and {PYTHON_FRAMES} Python frames)")
    nested(PYTHON_FRAMES - python_depth(), lambda: measure_pairs(bench, on_device))


def thread_rates(bench, task, variants, threads):
    """Pairs per second and variant; they take turns."""
    rates = {variant: [] for variant in variants}
    for _ in range(3):
        for variant, seen in rates.items():
            bench.stack(variant.stack)
            seen.append(bench.lib.bench_pairs_per_second(task, variant.which, threads))
    return {variant: statistics.median(seen) for variant, seen in rates.items()}


def part_threads(bench, _):
    cores = len(os.sched_getaffinity(0))
    bare, tracked = Variant("bare", which=BARE), Variant("tracked")
    native = Variant("native stack", NATIVE)
    for name, task in (("cuMemAlloc pairs", DEVICE), ("cuMemAllocAsync pairs", DEFAULT)):
        print(f"{name} by several threads: of all, and what is added to one")
        one = None
        for threads in (1, 2, 4, 8, 16):
            rates = thread_rates(bench, task, (bare, tracked, native), threads)
            one = one or rates[tracked]
            for variant, rate in rates.items():
                added = (threads / rate - threads / rates[bare]) * 1e9
                budget = ""
                if threads == 16 and variant is tracked:
                    ratio = rate / one
                    budget = (f"x 8 of one thread: x {ratio:.2f}, {verdict(ratio, 8, 'at least')}"
                              if cores >= 16 else f"x 8 of one thread: not judged on {cores} cores")
                figures = f"{rate / 1e6:10.2f} M/s"
                line(f"{threads} threads, {variant.name}",
                     figures if variant is bare else f"{figures} {added:+10.1f} ns", budget)


def part_live(bench, _):
    bench.stack(NATIVE)
    each = bench.lib.bench_live_bytes(1_000_000)
    print("memory per live allocation, stacks shared")
    line("1,000,000 live", f"{each:10.1f} bytes", f"budget 96: {verdict(each, 96)}")


def part_report(bench, _):
    bench.stack(NATIVE)
    ms = bench.lib.bench_report_ms(100_000)
    print("report to disk")
    line("100,000 live", f"{ms:10.1f} ms", f"budget 50 ms: {verdict(ms, 50)}")


def part_survived(bench, on_device):
    retrier = ctypes.CDLL(str(bench.folder / "libc10_cuda.so")).bench_attempt
    attempt = ctypes.cast(retrier, ctypes.c_void_p)
    bench.stack(BOTH)
    times = {BARE: [], GIVEN: []}
    for turn in range(41):
        for which in (BARE, GIVEN) if turn % 2 else (GIVEN, BARE):
            times[which].append(bench.lib.bench_survived_us(which, attempt))
    # The first has to look things up: it is what a caller meets, too.
    added = statistics.median(mine - bare for mine, bare in zip(times[GIVEN], times[BARE]))
    first = times[GIVEN][0] - statistics.median(times[BARE])
    print("a failure that its caller survives: fail, free, ask again")
    line("bare", f"{statistics.median(times[BARE]):10.1f} us")
    line("given", f"{statistics.median(times[GIVEN]):10.1f} us {added:+10.1f} us",
         f"budget +1000 us: {verdict(added, 1000)}")
    line("the first one", f"{times[GIVEN][0]:10.1f} us {first:+10.1f} us",
         f"budget +1000 us: {verdict(first, 1000)}")


PARTS = {"pairs": part_pairs, "threads": part_threads, "live": part_live, "report": part_report,
         "survived": part_survived}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[3] not in PARTS:
        sys.exit(f"usage: bench.py LIBRARY BENCH {'|'.join(PARTS)}")
    PARTS[sys.argv[3]](Bench(sys.argv[1], sys.argv[2]), not os.environ.get("GPUSIM_ZERO_COST"))
