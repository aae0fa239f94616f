/* How far a word is from the one that was meant. */
#ifndef GOS_BASE_SPELLING_H
#define GOS_BASE_SPELLING_H

#include <stddef.h>

#define GOS_SPELLING_MAX 64

/*
 * Letters to insert, delete or replace to make `other` of the first `length`
 * bytes of `word`; SIZE_MAX when `word` is longer than GOS_SPELLING_MAX.
 */
size_t gos_spelling_distance(const char *word, size_t length, const char *other);

/* Below this distance a word of that length may be a slip for the other. */
static inline size_t gos_spelling_limit(size_t length)
{
    return length / 3 + 2;
}

#endif
