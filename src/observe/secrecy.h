/*
 * What must not stand in a report: keys, tokens and passwords.  A guess by
 * shape, on top of the allow-list of variables.  Pure.
 */
#ifndef GOS_OBSERVE_SECRECY_H
#define GOS_OBSERVE_SECRECY_H

#include <stdbool.h>
#include <stddef.h>

/* Does the last word of the name say so?  "NVIDIA_API_KEY", "--hf-token", not "--tokenizer". */
bool gos_secrecy_name(const char *name, size_t length);

/* Known prefixes of tokens, user:password@ in an address, long runs of mixed characters. */
bool gos_secrecy_value(const char *value, size_t length);

#endif
