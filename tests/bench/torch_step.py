#!/usr/bin/env python3
"""What the library costs a training step: a small transformer layer, eager mode.

    torch_step.py LIBRARY [PAIRS]      pairs of processes, one of each with it
    torch_step.py serve                one process: for each line on stdin, the median of
                                       some steps, in ms

The allocator is torch's own, so few calls reach the driver; what is measured is
mostly the price of hooked launches.  Whether a library is preloaded cannot change within a
process, so two processes live side by side, on the same cores, and take turns every few
steps: moods of the machine meet both.  What remains is how each process happens to lie in
memory; each pair gives one ratio, and below them stands their median with its 95 %
confidence interval (that of order statistics: nothing is assumed of how the ratios scatter).
"""
import os
import statistics
import subprocess
import sys
import time

LIMIT = 0.5  # percent
PAIRS = 9
WARM_UP, STEPS, TURNS = 60, 20, 24


def serve():
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError:
        return 77
    if not torch.cuda.is_available():
        return 77
    torch.manual_seed(1)
    model = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(16, 128, 512, device="cuda")

    def step():
        begin = time.perf_counter()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) * 1000

    for _ in range(WARM_UP):
        step()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(f"{statistics.median(step() for _ in range(STEPS)):.5f}", flush=True)
    return 0


class Process:
    def __init__(self, library):
        environment = dict(os.environ)
        if library:
            environment["LD_PRELOAD"] = library
        self.process = subprocess.Popen([sys.executable, __file__, "serve"], env=environment,
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(self.process.wait() or 1)
        return line.strip()

    def turn(self):
        print(file=self.process.stdin, flush=True)
        return float(self.answer())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure_pair(library):
    """Added time in percent, and both medians."""
    bare, given = Process(None), Process(library)
    for process in (bare, given):
        process.answer()  # ready
    times = {bare: [], given: []}
    for turn in range(TURNS):
        for process in (bare, given) if turn % 2 else (given, bare):
            times[process].append(process.turn())
    for process in (bare, given):
        process.end()
    added = statistics.median(mine / other for mine, other in zip(times[given], times[bare]))
    return (added - 1) * 100, statistics.median(times[bare]), statistics.median(times[given])


def interval(values):
    """The smallest symmetric pair of order statistics around the median, 95 %."""
    count = len(values)
    chance, outside, skipped = 0.5 ** count, 0.0, 0
    while outside + chance <= 0.025:
        outside += chance
        chance *= (count - skipped) / (skipped + 1)
        skipped += 1
    if skipped == 0:
        return float("-inf"), float("inf")
    return sorted(values)[skipped - 1], sorted(values)[count - skipped]


def verdict(low, high):
    if high <= LIMIT:
        return "met"
    return "MISSED" if low > LIMIT else "not resolved: more pairs are needed"


def compare(library, pairs):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    added = []
    for number in range(pairs):
        percent, bare, given = measure_pair(library)
        added.append(percent)
        print(f"  pair {number + 1:<3} bare {bare:9.4f} ms  given {given:9.4f} ms  "
              f"{percent:+7.3f} %", flush=True)
    low, high = interval(added)
    print(f"  torch training step: {statistics.median(added):+.3f} %, 95 % within "
          f"[{low:+.3f}, {high:+.3f}]    budget +{LIMIT} %: {verdict(low, high)}")
    return 0


if sys.argv[1:2] == ["serve"]:
    sys.exit(serve())
if len(sys.argv) not in (2, 3):
    sys.exit(__doc__)
sys.exit(compare(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS))
