#!/usr/bin/env python3
"""What the library costs a training step: a small transformer layer, eager mode.

    torch_step.py LIBRARY [ROUNDS]     rounds of two processes, with and without it
    torch_step.py                      one process: the median of its steps, in ms

The allocator is torch's own, so few calls reach the driver; what is measured is
mostly the price of hooked launches.  Whether a library is preloaded cannot change within a
process, so short processes take turns, and each round gives one ratio.  Below
the rounds stands the median ratio with its 95 % confidence interval (that of
order statistics: nothing is assumed of how the ratios scatter).
"""
import os
import statistics
import subprocess
import sys
import time

LIMIT = 0.5  # percent
ROUNDS = 16
WARM_UP, STEPS = 40, 160


def one_process():
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
    times = []
    for _ in range(WARM_UP + STEPS):
        begin = time.perf_counter()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1000)
    print(f"{statistics.median(times[WARM_UP:]):.5f}")
    return 0


def step_ms(library):
    environment = dict(os.environ)
    if library:
        environment["LD_PRELOAD"] = library
    done = subprocess.run([sys.executable, __file__], env=environment, text=True,
                          stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return float(done.stdout)


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
    return "MISSED" if low > LIMIT else "not resolved: more rounds are needed"


def compare(library, rounds):
    added = []
    for turn in range(rounds):
        given_first = turn % 2
        first = step_ms(library if given_first else None)
        second = step_ms(None if given_first else library)
        bare, given = (second, first) if given_first else (first, second)
        added.append((given / bare - 1) * 100)
        print(f"  round {turn + 1:<3} bare {bare:9.4f} ms  given {given:9.4f} ms  "
              f"{added[-1]:+7.3f} %", flush=True)
    low, high = interval(added)
    print(f"  torch training step: {statistics.median(added):+.3f} %, 95 % within "
          f"[{low:+.3f}, {high:+.3f}]    budget +{LIMIT} %: {verdict(low, high)}")
    return 0


if len(sys.argv) > 1:
    sys.exit(compare(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS))
sys.exit(one_process())
