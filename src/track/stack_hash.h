/*
 * Hashes of captured stacks.  Not for adversaries: whoever finds by one
 * compares afterwards.  Never 0.
 */
#ifndef GOS_TRACK_STACK_HASH_H
#define GOS_TRACK_STACK_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "site.h"

/* Any words; `bytes` is a multiple of 8.  Four multiplications in flight. */
uint64_t gos_stack_hash(const void *words, size_t bytes, uint64_t seed);

uint64_t gos_stack_hash_native(const uintptr_t *addresses, size_t count);
uint64_t gos_stack_hash_python(const struct gos_python_ref *refs, size_t count);

#define GOS_STACK_HASH_START UINT64_C(0x6a09e667f3bcc909)

/*
 * One more Python frame.  The walk over frames waits for memory anyway, so
 * that hashing there costs next to nothing; hashing afterwards would read
 * words that are still on their way to memory.
 */
static inline uint64_t gos_stack_hash_add(uint64_t hash, const struct gos_python_ref *ref)
{
    uint64_t place = (uint64_t)ref->offset << 32 | ref->guard;
    uint64_t frame =
        ref->code * UINT64_C(0x9e3779b97f4a7c15) ^ place * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (hash + (frame ^ frame >> 31)) * UINT64_C(0x165667b19e3779f9);
}

static inline uint64_t gos_stack_hash_finish(uint64_t hash)
{
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

#endif
