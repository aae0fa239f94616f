#include "stack_hash.h"

#include <string.h>

#define LANES 4
#define LANE_BYTES (2 * sizeof(uint64_t))
#define STEP_BYTES (LANES * LANE_BYTES)

/* Odd constants without structure: digits of the square roots of 2, 3, 5 and 7. */
static const uint64_t constants[LANES] = {
    UINT64_C(0x6a09e667f3bcc909),
    UINT64_C(0xbb67ae8584caa73b),
    UINT64_C(0x3c6ef372fe94f82b),
    UINT64_C(0xa54ff53a5f1d36f1),
};

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t absorb(uint64_t lane, const char *words, uint64_t constant)
{
    uint64_t pair[2];
    memcpy(pair, words, sizeof pair);
    return fold(lane ^ pair[0], pair[1] ^ constant) + lane;
}

static uint64_t absorb_rest(uint64_t lane, const char *words, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LANE_BYTES) {
        char pair[LANE_BYTES] = {0};
        size_t left = bytes - at;
        memcpy(pair, words + at, left < LANE_BYTES ? left : LANE_BYTES);
        lane = absorb(lane, pair, constants[at / LANE_BYTES % LANES]);
    }
    return lane;
}

uint64_t gos_stack_hash(const void *words, size_t bytes, uint64_t seed)
{
    const char *data = words;
    uint64_t a = seed ^ constants[0], b = seed ^ constants[1];
    uint64_t c = seed ^ constants[2], d = seed ^ constants[3];
    size_t at = 0;
    for (; at + STEP_BYTES <= bytes; at += STEP_BYTES) {
        a = absorb(a, data + at, constants[0]);
        b = absorb(b, data + at + LANE_BYTES, constants[1]);
        c = absorb(c, data + at + 2 * LANE_BYTES, constants[2]);
        d = absorb(d, data + at + 3 * LANE_BYTES, constants[3]);
    }
    uint64_t hash = fold(a ^ c, b + bytes) ^ fold(d, constants[3]);
    hash = absorb_rest(hash, data + at, bytes - at);
    return gos_stack_hash_finish(hash);
}

uint64_t gos_stack_hash_native(const uintptr_t *addresses, size_t count)
{
    return gos_stack_hash(addresses, count * sizeof addresses[0], 0);
}

uint64_t gos_stack_hash_python(const struct gos_python_ref *refs, size_t count)
{
    uint64_t hash = GOS_STACK_HASH_START;
    for (size_t i = 0; i < count; i++)
        hash = gos_stack_hash_add(hash, &refs[i]);
    return gos_stack_hash_finish(hash);
}
