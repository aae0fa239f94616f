/*
 * Bounded text.  Never allocates, never fails: what does not fit is cut and
 * `truncated` says so.  Own formatting instead of printf's, which may allocate
 * and follows the host's locale.
 */
#ifndef GOS_BASE_TEXT_H
#define GOS_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gos_text {
    char *data;
    size_t size;   /* of data, including the final NUL */
    size_t length; /* without the final NUL; data is always terminated */
    bool truncated;
};

struct gos_text gos_text_on(char *buffer, size_t size);

void gos_text_char(struct gos_text *text, char c);
void gos_text_put(struct gos_text *text, const char *string);
void gos_text_put_n(struct gos_text *text, const char *string, size_t length);

/*
 * Understands %s %.*s %c %d %i %u %x with h, l, ll, z, j lengths, %p, %%, a width
 * (number or *) and the flags '-' and '0'.  No floating point.
 */
__attribute__((format(printf, 2, 3))) void gos_text_format(struct gos_text *text,
                                                           const char *format, ...);
__attribute__((format(printf, 2, 0))) void gos_text_vformat(struct gos_text *text,
                                                            const char *format, va_list args);

/* "4.00 GiB", "512.0 MiB", "700 KiB", "1.5 KiB", "512 B": for people; exact value elsewhere. */
void gos_text_bytes(struct gos_text *text, uint64_t bytes);
/* "138.2": gibibytes with one decimal, rounded half up. */
void gos_text_gib(struct gos_text *text, uint64_t bytes);
/* "412 ms", "1.2 s", "85 us", "850 ns". */
void gos_text_duration(struct gos_text *text, uint64_t ns);
/* "2026-11-30 03:12:44 UTC" from nanoseconds since 1970. */
void gos_text_time(struct gos_text *text, uint64_t wall_ns);
/* Of that, the time of day: "03:12:44". */
void gos_text_time_of_day(struct gos_text *text, uint64_t wall_ns);

/* Is string[0..length) that word, upper and lower case (of ASCII, in any locale) alike? */
bool gos_text_is_word(const char *string, size_t length, const char *word);

/* What follows the last '/' of a path. */
const char *gos_text_base_name(const char *path);

/*
 * The number at the string's beginning.  Returns what follows it, or NULL with
 * *error -EINVAL (no digit) or -ERANGE (above UINT64_MAX).
 */
const char *gos_text_parse_digits(const char *string, uint64_t *value, int *error);
/*
 * Parse a size: digits, then nothing or B, K, KB, KiB, M…, G…, T… (powers of
 * 1024, any case, at most one space).  0, or -EINVAL / -ERANGE.
 */
__attribute__((warn_unused_result)) int gos_text_parse_bytes(const char *string, uint64_t *bytes);
/* Parse a duration: digits with optional fraction, then ns, us, ms, s, m, h (default s). */
__attribute__((warn_unused_result)) int gos_text_parse_duration(const char *string, uint64_t *ns);

#endif
