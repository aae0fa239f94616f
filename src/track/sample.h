/*
 * Which stream-ordered allocations get a stack, with GPUOOMSHIM_STACK_SAMPLE:
 * about one in so many bytes.  The distances between them are drawn at random
 * (exponential), so that no pattern of sizes hides from them or is preferred.
 *
 * Hook context: yes; per thread, no lock.
 */
#ifndef GOS_TRACK_SAMPLE_H
#define GOS_TRACK_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/options.h"

/* As the next one, with sampling on. */
bool gos_sample_draws(uint64_t bytes);
/* Always true while sampling is off. */
static inline bool gos_sample_takes(uint64_t bytes)
{
    return !gos_options.stack_sample || gos_sample_draws(bytes);
}

/*
 * The bytes that one allocation with a stack stands for, itself and those like
 * it without one, when the mean distance is `mean_bytes`: its size divided by
 * the chance that it was taken.
 */
uint64_t gos_sample_estimate(uint64_t bytes, uint64_t mean_bytes);

#endif
