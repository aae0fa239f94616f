/*
 * Is a series of live bytes a leak's?  Rank statistics only, so that one outlier
 * or one odd size decides nothing, and no assumption about the distribution.
 *
 * STEADY wants all of these, in this order; the first that fails gives the name:
 *
 *   enough     GOS_TREND_POINTS_LEAST points, else UNKNOWN.
 *   a trend    Mann-Kendall: S, the number of pairs of points of which the later
 *              one is higher less those of which it is lower, is beyond 3.3
 *              standard deviations (with the correction for ties), p < 0.0005 for
 *              independent points.  Else NONE: noise, a sawtooth, a cache that
 *              is full, a working set that comes back.
 *   its steps  More intervals rise than fall, by 2.6 standard deviations of a
 *              fair coin.  Mann-Kendall takes a random walk for a trend, because
 *              its points are not independent; its steps are.  Else NONE.
 *   spread     The two largest rises make up less than half of the growth.
 *              Else STEPS: a model loaded and then another.
 *   going on   The later half's Theil-Sen slope (the median over all pairs of
 *              points) is at least two thirds of the whole's, and above zero; and
 *              it did not end before the run did: the intervals at the end that
 *              rise by less than half of the whole's slope are no more than its
 *              earlier ones lead one to expect (chance 1 in 100).
 *              Else FLATTENED: a warm-up, a cache that fills.
 *
 * What it cannot tell: a cache that is still filling when the memory ends, or that
 * was full for less than the last tenth of the run, and a line that is meant to
 * keep what it allocates.  What it misses: leaks smaller
 * than the same site's noise, and those that began in the last fifth of the run.
 *
 * Measured on seeded series of 13 to 33 points (tests/unit/test_diagnose_trend.c):
 * at most 5 in 1,000 of any family without a leak are called STEADY (random walks
 * and growth that ended 15 % before the run; the others: none to 2), and at least
 * 95 in 100 leaks.
 *
 * Pure; no mathematics library; about 5 KiB of stack.
 */
#ifndef GOS_DIAGNOSE_TREND_H
#define GOS_DIAGNOSE_TREND_H

#include <stddef.h>
#include <stdint.h>

#define GOS_TREND_POINTS_LEAST 12
#define GOS_TREND_POINTS_MOST 33 /* of more, the newest count */

enum gos_trend {
    GOS_TREND_UNKNOWN,
    GOS_TREND_NONE,
    GOS_TREND_STEPS,
    GOS_TREND_FLATTENED,
    GOS_TREND_STEADY,
    GOS_TREND_COUNT
};

/* at: the clock of each point, ascending; two points may have the same. */
enum gos_trend gos_trend_of(const uint64_t *at, const uint64_t *bytes, size_t count);

/*
 * The median slope over the last quarter and no fewer than five points, in bytes for each `per` of
 * the clock; 0 when it does not rise, or with fewer than two points.
 */
uint64_t gos_trend_pace(const uint64_t *at, const uint64_t *bytes, size_t count, uint64_t per);

/*
 * From the median of the first three points to that of the last three, 0 when it
 * fell or there are fewer than six: what a sawtooth does at either end does not count.
 */
uint64_t gos_trend_growth(const uint64_t *bytes, size_t count);

const char *gos_trend_code(enum gos_trend trend); /* "steady" … */

#endif
