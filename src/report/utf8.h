/* Strings that come from the host may hold anything; reports hold UTF-8. */
#ifndef GOS_REPORT_UTF8_H
#define GOS_REPORT_UTF8_H

#include <stddef.h>

/*
 * Length in bytes of the well-formed UTF-8 character at s (1 to 4), or 0 when
 * there is none: a stray or missing continuation, an overlong form, a
 * surrogate, beyond U+10FFFF.  Reads no further than the terminating NUL.
 */
size_t gos_utf8_length(const char *s);

/*
 * The character at s as a terminal may safely show it: '?' for a control
 * character, U+FFFD for what is not UTF-8.  out is terminated.  Returns the
 * bytes consumed; s must not be at its end.
 */
size_t gos_utf8_printable(const char *s, char out[5]);

/* Characters in the string, each byte of what is not UTF-8 counted as one. */
size_t gos_utf8_columns(const char *s);

#endif
