/*
 * Whose growth used the device up: one site's, or that of many.
 *
 * A LEAK wants all of these:
 *   the site's series is STEADY (trend.h);
 *   its growth is at least what the request missed: without it there had been room;
 *   in the later half of the run it made up most of the growth of the device's
 *     live bytes, so that what was loaded at the start does not count;
 *   its oldest allocation is from when the growth began: what is freed in turn
 *     (a queue that gets longer, a buffer made anew and larger) is not kept;
 *   in three of four intervals in which it grew, something was freed: the rest
 *     came and went meanwhile.  Without that it is UNFREED: from outside, loading
 *     more than fits looks the same, so nobody is accused.
 * One line of Python may be reached in several ways, each a site: where no site
 * alone is a leak, sites that have their newest lines in common (their whole
 * Python stack, else three lines of their own code, two, one) are added up and
 * put to the same test, if each of them grew and what failed is none that did
 * not: else it is a function that all memory comes through, and its callers are
 * the lines.
 *
 * Failing the site's share, with the device as a whole or several sites STEADY,
 * it is growth OF_MANY: a bigger model, longer sequences, larger batches.
 *
 * It never is proof: how a line is meant cannot be measured.
 *
 * Pure.
 */
#ifndef GOS_DIAGNOSE_LEAK_H
#define GOS_DIAGNOSE_LEAK_H

#include <stdbool.h>

#include "../observe/evidence.h"
#include "trend.h"

enum gos_growth_kind {
    GOS_GROWTH_NONE, /* or not known */
    GOS_GROWTH_LEAK,
    GOS_GROWTH_UNFREED,
    GOS_GROWTH_OF_MANY
};

struct gos_leak {
    enum gos_growth_kind kind;
    const struct gos_growth_series *device;
    const struct gos_growth_series *site; /* that grew most, may be `sum`; NULL: NONE */
    const struct gos_growth_series *next; /* OF_MANY: that grew second, may be NULL */
    uint64_t grown_bytes;                 /* by the site, or OF_MANY by the device */
    /* Of the site in the device's growth in the later half, at most 1000. */
    uint32_t share_permille;
    unsigned lines;               /* that the sites of `sum` have in common; 0: one site */
    size_t way_count;             /* so many sites */
    struct gos_growth_series sum; /* bears the number of the site that grew most */
    uint64_t sum_bytes[GOS_TREND_POINTS_MOST];
};

/* Not to be copied: it points into itself. */
void gos_leak_find(const struct gos_evidence *evidence, uint32_t device, uint64_t missing_bytes,
                   struct gos_leak *leak);

/* Is it the one that grew, or of those that were added up? */
bool gos_leak_has(const struct gos_leak *leak, uint32_t site);

enum gos_trend gos_leak_trend(const struct gos_growth *growth,
                              const struct gos_growth_series *series);

/* Growth in the last quarter, for each thousand allocations. */
uint64_t gos_leak_pace(const struct gos_growth *growth, const struct gos_growth_series *series);

/* NULL when the site held nothing there, or is not among those that were looked at. */
const struct gos_growth_series *gos_leak_series(const struct gos_growth *growth, uint32_t site,
                                                uint32_t device);

#endif
