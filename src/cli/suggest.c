#include "suggest.h"

#include <string.h>

#include "../base/spelling.h"

const char *gos_suggest(const char *word, const char *const *words, size_t count)
{
    size_t length = strlen(word);
    size_t best = gos_spelling_limit(length);
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = gos_spelling_distance(word, length, words[i]);
        if (distance < best) {
            best = distance;
            found = words[i];
        }
    }
    return found;
}
