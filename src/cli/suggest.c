#include "suggest.h"

#include <string.h>

#define WORD_BYTES 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters to insert, delete or replace; one row of the table at a time. */
static size_t edit_distance(const char *from, const char *to)
{
    size_t costs[WORD_BYTES + 1];
    size_t length = strlen(to);
    for (size_t i = 0; i <= length; i++)
        costs[i] = i;
    for (size_t row = 1; from[row - 1]; row++) {
        size_t diagonal = costs[0];
        costs[0] = row;
        for (size_t i = 1; i <= length; i++) {
            size_t replaced = diagonal + (from[row - 1] != to[i - 1]);
            diagonal = costs[i];
            costs[i] = least(replaced, least(costs[i], costs[i - 1]) + 1);
        }
    }
    return costs[length];
}

const char *gos_suggest(const char *word, const char *const *words, size_t count)
{
    size_t best = strlen(word) / 3 + 2;
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) > WORD_BYTES)
            continue;
        size_t distance = edit_distance(word, words[i]);
        if (distance < best) {
            best = distance;
            found = words[i];
        }
    }
    return found;
}
