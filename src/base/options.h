/*
 * Settings from the environment, read once, before the first hook does
 * anything.  A value that cannot be read gives one clear line on stderr and
 * the default; it never stops the program.
 */
#ifndef GOS_BASE_OPTIONS_H
#define GOS_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject_option.h"
#include "limit_option.h"

#define GOS_OPTION_TYPE_FLAG bool
#define GOS_OPTION_TYPE_COUNT uint64_t
#define GOS_OPTION_TYPE_SIZE uint64_t
#define GOS_OPTION_TYPE_DURATION uint64_t
#define GOS_OPTION_TYPE_PATH const char *
#define GOS_OPTION_TYPE_FUNCTIONS const char *
#define GOS_OPTION_TYPE_SET uint32_t
#define GOS_OPTION_TYPE_CHOICE uint32_t
#define GOS_OPTION_TYPE_LIMIT struct gos_limit_option
#define GOS_OPTION_TYPE_INJECT struct gos_inject_option

struct gos_options {
#define OPTION(field, name, type, fallback, values, help) GOS_OPTION_TYPE_##type field;
#include "options.def"
#undef OPTION
};

/* Words of the SET and CHOICE options, in the order of options.def. */
enum { GOS_REPORT_TEXT = 1u << 0, GOS_REPORT_JSON = 1u << 1 };
enum { GOS_REPORT_ON_FAILED, GOS_REPORT_ON_ALL };
enum {
    GOS_RETRY_RESERVE = 1u << 0,
    GOS_RETRY_SYNC = 1u << 1,
    GOS_RETRY_TRIM = 1u << 2,
    GOS_RETRY_FLUSH = 1u << 3,
    GOS_RETRY_WAIT = 1u << 4,
    GOS_RETRY_FALLBACK = 1u << 5
};
enum { GOS_STACK_OFF, GOS_STACK_NATIVE, GOS_STACK_PYTHON, GOS_STACK_BOTH };

/* Filled with the defaults statically is not possible; call the loader first. */
extern struct gos_options gos_options;

/*
 * Read the settings from an environment block ("NAME=value", NULL-terminated).
 * Strings are kept by pointer when they come from the process' own block at
 * start, so they are copied to permanent memory.  Says one line for each value
 * that cannot be read and for each unknown GPUOOMSHIM_ name (with the nearest
 * known one).  Returns the number of such lines.  Idempotent.
 */
int gos_options_load(char *const *environment);

/* For `gpuoomshim options` and the README's table. */
enum gos_option_type {
    GOS_OPTION_FLAG,
    GOS_OPTION_COUNT,
    GOS_OPTION_SIZE,
    GOS_OPTION_DURATION,
    GOS_OPTION_PATH,
    GOS_OPTION_FUNCTIONS,
    GOS_OPTION_SET,
    GOS_OPTION_CHOICE,
    GOS_OPTION_LIMIT,
    GOS_OPTION_INJECT
};
struct gos_option_row {
    const char *name; /* without the prefix */
    enum gos_option_type type;
    const char *fallback;
    const char *values;
    const char *help;
    size_t offset; /* of the field in struct gos_options */
};
extern const struct gos_option_row gos_option_rows[];
extern const size_t gos_option_row_count;

#endif
