/*
 * uthash tables whose key is a number: an address or a handle.
 *
 * The number itself stands where uthash keeps a pointer to the key, and the
 * key's length says what kind of number it is (any value; equal numbers of
 * different kinds are different keys).  That saves eight bytes and one cache
 * miss per element.  Use the *_BYHASHVALUE macros with gos_table_hash.
 *
 * Memory comes from base/memory.h, and its failure never ends the process: an
 * element that could not be added has hh.tbl == NULL.
 */
#ifndef GOS_TRACK_TABLE_H
#define GOS_TRACK_TABLE_H

#include <stdint.h>

#include "../base/memory.h"

#ifdef UTHASH_H
#error "include table.h before uthash.h: its settings differ"
#endif

#define HASH_NONFATAL_OOM 1
#define HASH_KEYCMP(a, b, length) ((a) != (b))
#define uthash_malloc(bytes) gos_memory_alloc(bytes)
#define uthash_free(memory, bytes) gos_memory_free(memory, bytes)
#define uthash_bzero(memory, bytes) ((void)0) /* gos_memory_alloc gives zeroes */
#include <uthash.h>

_Static_assert(sizeof(void *) == 8, "a key is kept in a pointer");

/* Every bit of the number reaches every bit: addresses differ in few of theirs. */
static inline uint64_t gos_table_mix(uint64_t number)
{
    number ^= number >> 32;
    number *= UINT64_C(0x9e3779b97f4a7c15);
    number ^= number >> 29;
    number *= UINT64_C(0xd6e8feb86659fd93);
    return number ^ (number >> 32);
}

static inline uint32_t gos_table_hash(uint64_t mixed)
{
    return (uint32_t)mixed;
}

static inline const void *gos_table_key(uint64_t number)
{
    return (const void *)(uintptr_t)number;
}

#endif
