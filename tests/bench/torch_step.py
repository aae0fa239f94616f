#!/usr/bin/env python3
"""What the library costs a training step: a transformer layer, eager mode.

    torch_step.py LIBRARY [MODEL [PAIRS]]   pairs of processes, one of each with it; both models
    torch_step.py serve MODEL               one process: for each line on stdin, the median of
                                            some steps, in ms

The allocator is torch's own, so few calls reach the driver; what is measured is
mostly the price of hooked launches.  The small model does little but launch, which shows that
price best and scatters most; in the large one the device is the slow part, as in most training.

Whether a library is preloaded cannot change within a process, so two processes live side by
side, on the same cores, and take turns every few steps: moods of the machine meet both.  What
remains is how each process happens to lie in memory; each pair gives one ratio, and below them
stands their median with its 95 % confidence interval (that of order statistics: nothing is
assumed of how the ratios scatter).
"""
import os
import statistics
import subprocess
import sys
import time

LIMIT = 0.5  # percent
WARM_UP = 20


class Model:
    def __init__(self, width, heads, batch, words, steps, turns, pairs):
        self.width, self.heads, self.batch, self.words = width, heads, batch, words
        self.steps, self.turns, self.pairs = steps, turns, pairs  # of a turn, a pair, a run


MODELS = {"small": Model(512, 8, 16, 128, steps=20, turns=24, pairs=9),
          "large": Model(2048, 16, 8, 512, steps=8, turns=8, pairs=6)}


def serve(given):
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError:
        return 77
    if not torch.cuda.is_available():
        return 77
    torch.manual_seed(1)
    model = torch.nn.TransformerEncoderLayer(given.width, given.heads, batch_first=True).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(given.batch, given.words, given.width, device="cuda")

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
        print(f"{statistics.median(step() for _ in range(given.steps)):.5f}", flush=True)
    return 0


class Process:
    def __init__(self, library, name):
        environment = dict(os.environ)
        if library:
            environment["LD_PRELOAD"] = library
        self.process = subprocess.Popen([sys.executable, __file__, "serve", name], env=environment,
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


def measure_pair(library, name):
    """Added time in percent, and both medians."""
    bare, given = Process(None, name), Process(library, name)
    for process in (bare, given):
        process.answer()  # ready
    times = {bare: [], given: []}
    for turn in range(MODELS[name].turns):
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


def compare(library, name, pairs):
    added = []
    for number in range(pairs):
        percent, bare, given = measure_pair(library, name)
        added.append(percent)
        print(f"  pair {number + 1:<3} bare {bare:9.4f} ms  given {given:9.4f} ms  "
              f"{percent:+7.3f} %", flush=True)
    low, high = interval(added)
    print(f"  {name} training step: {statistics.median(added):+.3f} %, 95 % within "
          f"[{low:+.3f}, {high:+.3f}]    budget +{LIMIT} %: {verdict(low, high)}", flush=True)


def main(words):
    if words[:1] == ["serve"]:
        return serve(MODELS[words[1]])
    if not 1 <= len(words) <= 3 or (words[1:] and words[1] not in MODELS):
        sys.exit(__doc__)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    for name in words[1:2] or MODELS:
        compare(words[0], name, int(words[2]) if words[2:] else MODELS[name].pairs)
    return 0


sys.exit(main(sys.argv[1:]))
