/*
 * Values of a JSON object, leniently: what is missing or of another type is
 * what an empty report would have there.
 */
#ifndef GOS_CLI_JSON_VALUE_H
#define GOS_CLI_JSON_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is the key there with a value other than null? */
bool gos_value_has(const json_t *object, const char *key);
/* `fallback` for null and whatever is no number. */
uint64_t gos_value_number(const json_t *object, const char *key, uint64_t fallback);
int64_t gos_value_signed(const json_t *object, const char *key, int64_t fallback);
bool gos_value_bool(const json_t *object, const char *key);
/* NULL for null; the text lives as long as the document. */
const char *gos_value_string(const json_t *object, const char *key);
/* The same, but "" for null. */
const char *gos_value_text(const json_t *object, const char *key);
/* Always terminated, "" for null. */
void gos_value_copy(const json_t *object, const char *key, char *buffer, size_t bytes);
/* Position of the string among `count` names, or `fallback`. */
unsigned gos_value_word(const json_t *object, const char *key, const char *(*name)(unsigned),
                        unsigned count, unsigned fallback);

#endif
