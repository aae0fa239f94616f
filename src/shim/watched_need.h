/*
 * What a watched call needed, as far as its arguments and the driver tell.
 *
 * Hook context.  Asks the driver for a loaded kernel's attributes and for the
 * device's, which loads nothing and waits for nothing.
 */
#ifndef GOS_SHIM_WATCHED_NEED_H
#define GOS_SHIM_WATCHED_NEED_H

#include "../cuda/cuda_types.h"
#include "../observe/evidence.h"

/* The arguments that tell; nothing of it: only the entry point does. */
struct gos_watched {
    CUfunction function; /* that was launched, or NULL */
    bool sets_limit;
    CUlimit limit;
    size_t value; /* to which the limit was set */
};

static inline struct gos_watched gos_watched_nothing(void)
{
    return (struct gos_watched){.sets_limit = false};
}
static inline struct gos_watched gos_watched_launch(CUfunction function)
{
    return (struct gos_watched){.function = function};
}
static inline struct gos_watched gos_watched_limit(CUlimit limit, size_t value)
{
    return (struct gos_watched){.sets_limit = true, .limit = limit, .value = value};
}

/* device: an ordinal, else the number of its threads is not known. */
struct gos_need gos_need_of(const struct gos_watched *watched, int device);

#endif
