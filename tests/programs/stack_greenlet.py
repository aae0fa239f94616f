"""Greenlets switch the C stack below the interpreter; each allocates on its own."""
import ctypes

import greenlet

from python_device import cuda


def one_round():
    address = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20)) == 0
    return address


def nested(depth, others):
    address = one_round()
    others.switch()
    if depth:
        nested(depth - 1, others)
    others.switch()
    assert cuda.cuMemFree_v2(address) == 0


def run(depth, main):
    nested(depth, main)


def take_turns():
    main = greenlet.getcurrent()
    waiting = [greenlet.greenlet(run) for _ in range(16)]
    for depth, one in enumerate(waiting):
        one.switch(depth, main)
    while waiting:
        for one in waiting:
            one.switch()
        waiting = [one for one in waiting if not one.dead]


for _ in range(20):
    take_turns()
print("outcome: all greenlets ended")
