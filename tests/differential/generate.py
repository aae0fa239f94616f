"""Sequences for the differential host: what may happen to memory, in any order.

    generate.py FIRST COUNT [--steps N] [--profile NAME] > FILE

A seed gives the same sequence for ever.  Slots are few, so that steps meet
each other; a step that finds its slot unfit does nothing, in both runs alike.
"""
import argparse
import random

THREADS, MEMORIES, STREAMS, EVENTS, POOLS, HANDLES, RANGES, GRAPHS, CONTEXTS = \
    4, 24, 6, 4, 4, 6, 4, 4, 5
MIB = 1 << 20

SMALL = [1, 17, 512, 513, 4096, 100_000, MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB, 5 * MIB]
LARGE = [32 * MIB, 100 * MIB, 300 * MIB, 700 * MIB]
ABSURD = [0, 1 << 60, (1 << 63) - 1]


class Profile:
    """Weights of steps, and which sizes there are."""

    def __init__(self, weights, large=0.1, absurd=0.02):
        self.names = list(weights)
        self.weights = list(weights.values())
        self.large, self.absurd = large, absurd


DEVICE = {"alloc": 12, "pitch": 3, "managed": 4, "host": 4, "register": 2, "array": 3, "free": 14,
          "free_twice": 2, "free_wrongly": 2, "free_nothing": 1, "describe": 2, "fill": 2}
ORDERED = {"stream_create": 6, "stream_destroy": 2, "stream_sync": 5, "stream_query": 3,
           "alloc_async": 16, "alloc_per_thread": 3, "alloc_from": 6, "free_async": 14,
           "free_per_thread": 3, "pool_create": 3, "pool_destroy": 2, "pool_trim": 3,
           "pool_threshold": 3, "pool_tell": 3, "pool_current": 2}
TIME = {"event_create": 3, "event_record": 4, "event_wait": 3, "event_query": 3, "event_sync": 2,
        "event_destroy": 1, "host_function": 4}
HELD = {"hold": 4, "open": 5}
VMM = {"vmm_create": 6, "vmm_release": 5, "vmm_reserve": 4, "vmm_map": 6, "vmm_access": 3,
       "vmm_unmap": 4, "vmm_unreserve": 3, "vmm_retain": 2}
CONTEXT = {"context_create": 2, "context_destroy": 2, "context_set": 4, "context_sync": 2}
GRAPH = {"capture_begin": 5, "capture_end": 5, "capture_mode": 2, "graph_instantiate": 4,
         "graph_launch": 4, "exec_destroy": 2, "graph_destroy": 2}
KERNEL = {"launch_kernel": 2}
RUNTIME = {"rt_alloc": 12, "rt_managed": 3, "rt_pitch": 3, "rt_host": 3, "rt_alloc_async": 10,
           "rt_free": 14, "rt_free_async": 8}

PROFILES = {
    "all": Profile({**DEVICE, **ORDERED, **TIME, **HELD, **VMM, **CONTEXT, **GRAPH, **KERNEL}),
    "full": Profile({**DEVICE, **ORDERED, **HELD, **VMM}, large=0.5, absurd=0.05),
    "runtime": Profile({**DEVICE, **ORDERED, **TIME, **CONTEXT, **RUNTIME}),
    # What a real GPU does the same way each time: nothing held (a free waits for
    # the device), nothing asked that depends on how quick it was, nothing large,
    # no handle that only the simulator takes.
    "silicon": Profile({name: weight for name, weight in
                        {**DEVICE, **ORDERED, **TIME, **VMM, **GRAPH}.items()
                        if name not in ("stream_query", "event_query", "pool_tell")},
                       large=0, absurd=0),
}

# Which slots a step fills, uses or empties: (kind, number of slots, first slot).
MEMORY, STREAM, EVENT = ("memory", MEMORIES, 0), ("stream", STREAMS, 2), ("event", EVENTS, 0)
POOL, HANDLE, RANGE = ("pool", POOLS, 2), ("handle", HANDLES, 0), ("range", RANGES, 0)
GRAPH_SLOT, CONTEXT_SLOT = ("graph", GRAPHS, 0), ("context", CONTEXTS, 2)
EFFECTS = {
    "fills": {"stream_create": STREAM, "event_create": EVENT, "pool_create": POOL,
              "vmm_create": HANDLE, "vmm_reserve": RANGE, "capture_end": GRAPH_SLOT,
              "context_create": CONTEXT_SLOT,
              **{name: MEMORY for name in ("alloc", "pitch", "managed", "host", "register",
                                           "array", "alloc_async", "alloc_per_thread",
                                           "alloc_from", "rt_alloc", "rt_managed", "rt_pitch",
                                           "rt_host", "rt_alloc_async")}},
    "uses": {"stream_sync": STREAM, "stream_query": STREAM, "hold": STREAM,
             "host_function": STREAM, "capture_begin": STREAM, "event_record": EVENT,
             "event_wait": EVENT, "event_query": EVENT, "event_sync": EVENT, "pool_tell": POOL,
             "pool_trim": POOL, "pool_threshold": POOL, "pool_current": POOL, "vmm_map": RANGE,
             "vmm_access": RANGE, "vmm_unmap": RANGE, "vmm_retain": RANGE, "describe": MEMORY,
             "fill": MEMORY, "free_wrongly": MEMORY, "graph_instantiate": GRAPH_SLOT,
             "graph_launch": GRAPH_SLOT, "exec_destroy": GRAPH_SLOT},
    "empties": {"stream_destroy": STREAM, "event_destroy": EVENT, "pool_destroy": POOL,
                "vmm_release": HANDLE, "vmm_unreserve": RANGE, "graph_destroy": GRAPH_SLOT,
                "context_destroy": CONTEXT_SLOT,
                **{name: MEMORY for name in ("free", "free_twice", "free_async",
                                             "free_per_thread", "rt_free", "rt_free_async")}},
}


class Slots:
    """What is probably in which slot, so that most steps find what they need."""

    def __init__(self, chance):
        self.chance, self.full = chance, {}

    def choose(self, name):
        for effect, table in EFFECTS.items():
            if name in table:
                return self.of(effect, *table[name])
        return None

    def of(self, effect, kind, count, first):
        full = self.full.setdefault(kind, set())
        fit = [i for i in range(first, count) if (i in full) == (effect != "fills")]
        slot = self.chance.choice(fit) if fit and self.chance.random() < 0.95 \
            else self.chance.randrange(count)
        if effect == "fills":
            full.add(slot)
        elif effect == "empties":
            full.discard(slot)
        return slot

    def stream(self):
        """One that was made, or a default stream."""
        full = sorted(self.full.get("stream", ()))
        return self.chance.choice(full) if full and self.chance.random() < 0.75 \
            else self.chance.randrange(2)


NEEDS = ["stream_create", "stream_create", "event_create", "pool_create"]


def size(chance, profile):
    kind = chance.random()
    if kind < profile.absurd:
        return chance.choice(ABSURD)
    if kind < profile.absurd + profile.large:
        return chance.choice(LARGE)
    return chance.choice(SMALL)


def arguments(slots, name, profile):
    """Three numbers: slots, sizes, what the step wants of them."""
    chance, slot, stream = slots.chance, slots.choose(name), slots.stream()
    bytes_ = size(chance, profile)
    slot = chance.randrange(MEMORIES) if slot is None else slot
    others = {
        "pitch": (bytes_ % 70_000, chance.randrange(1, 40)),
        "host": (bytes_ % (8 * MIB), chance.randrange(2)),
        "array": (chance.randrange(1, 3000), chance.randrange(1, 400)),
        "free_wrongly": (chance.randrange(2), 0),
        "fill": (stream, 0),
        "alloc_from": (bytes_, stream + STREAMS * chance.randrange(POOLS)),
        "free_async": (stream, 0),
        "rt_free_async": (stream, chance.randrange(2)),
        "pool_create": (chance.randrange(2), 0),
        "pool_trim": (chance.choice([0, 32 * MIB]), 0),
        "pool_threshold": (chance.choice([0, 64 * MIB, 1 << 40]), 0),
        "vmm_create": (chance.randrange(2), chance.randrange(1, 5)),
        "vmm_reserve": (chance.randrange(1, 6), 0),
        "vmm_map": (slots.of("uses", *HANDLE), 0),
        "context_create": (chance.randrange(2), 0),
        "graph_launch": (stream, 0),
        "event_record": (stream, 0),
        "event_wait": (stream, 0),
        "capture_begin": (chance.randrange(3), 0),
    }
    whole = {
        "context_set": (chance.choice([0, 0, 1, 2, 3, 4, 5]), 0, 0),
        "launch_kernel": (stream, chance.randrange(4), 0),
        "capture_mode": (chance.choice([0, 0, 1, 2]), 0, 0),
    }
    if name in whole:
        return whole[name]
    return (slot, *others.get(name, (bytes_, stream)))


def sequence(seed, steps, profile):
    chance = random.Random(f"{seed}")
    slots = Slots(chance)
    capture_thread = 0
    yield f"sequence {seed}"
    for name in NEEDS + chance.choices(profile.names, profile.weights, k=steps):
        thread = chance.randrange(THREADS)
        a, b, c = arguments(slots, name, profile)
        if name == "capture_begin":
            capture_thread = thread
        elif name == "capture_end":
            thread = capture_thread
        yield f"{thread} {name} {a} {b} {c}"


def generate(first, count, steps=60, profile="all"):
    lines = []
    for seed in range(first, first + count):
        lines += sequence(seed, steps, PROFILES[profile])
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--profile", choices=PROFILES, default="all")
    words = parser.parse_args()
    print(generate(words.first, words.count, words.steps, words.profile), end="")
