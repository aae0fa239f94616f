/* "Did you mean …": the nearest of a list of words. */
#ifndef GOS_CLI_SUGGEST_H
#define GOS_CLI_SUGGEST_H

#include <stddef.h>

/* The nearest word, or NULL when none is near enough to be what was meant. */
const char *gos_suggest(const char *word, const char *const *words, size_t count);

#endif
