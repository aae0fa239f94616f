#!/usr/bin/env python3
"""no_cuda.py LIBRARY: what the preloaded library costs a process that never touches CUDA.

Starts of /bin/true with and without it take turns.
"""
import os
import statistics
import sys
import time

TURNS = 400
LIMIT_US = 300


def start_us(environment):
    begin = time.perf_counter_ns()
    pid = os.posix_spawn("/bin/true", ["true"], environment)
    os.waitpid(pid, 0)
    return (time.perf_counter_ns() - begin) / 1000


def main():
    bare = {"PATH": os.environ["PATH"]}
    given = {**bare, "LD_PRELOAD": sys.argv[1]}
    times = ([], [])
    for turn in range(TURNS):
        for which in (0, 1) if turn % 2 else (1, 0):
            times[which].append(start_us((bare, given)[which]))
    added = statistics.median(mine - other for other, mine in zip(*times))
    verdict = "met" if added <= LIMIT_US else "MISSED"
    print("a process without CUDA: /bin/true")
    print(f"  {'bare':<24} {statistics.median(times[0]):10.1f} us")
    print(f"  {'preloaded':<24} {statistics.median(times[1]):10.1f} us {added:+10.1f} us"
          f"{'':<21}  budget +{LIMIT_US} us: {verdict}")


main()
