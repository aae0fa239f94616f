/*
 * Sums that stop at the end instead of wrapping: counters of a driver or of
 * another process are read at different moments and need not fit each other.
 */
#ifndef GOS_DIAGNOSE_SATURATE_H
#define GOS_DIAGNOSE_SATURATE_H

#include <stdint.h>

static inline uint64_t gos_plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t gos_times(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* a − b, 0 when b is larger. */
static inline uint64_t gos_beyond(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static inline uint64_t gos_lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t gos_greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* part / whole in 1/1000; 0 when the whole is nothing. */
static inline uint32_t gos_permille(uint64_t part, uint64_t whole)
{
    while (whole > UINT64_MAX / 1000) {
        whole >>= 1;
        part >>= 1;
    }
    return whole ? (uint32_t)gos_lesser(part * 1000 / whole, 1000) : 0;
}

#endif
