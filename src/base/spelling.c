#include "spelling.h"

#include <stdint.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Row after row of the classic table, of which only the newest is kept. */
size_t gos_spelling_distance(const char *word, size_t length, const char *other)
{
    size_t costs[GOS_SPELLING_MAX + 1];

    if (length > GOS_SPELLING_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= length; j++)
        costs[j] = j;
    for (size_t i = 1; other[i - 1]; i++) {
        size_t diagonal = costs[0];

        costs[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t replaced = diagonal + (word[j - 1] != other[i - 1]);

            diagonal = costs[j];
            costs[j] = least(replaced, least(costs[j], costs[j - 1]) + 1);
        }
    }
    return costs[length];
}
