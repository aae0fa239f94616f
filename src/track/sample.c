#include "sample.h"

#include "../base/os.h"
#include "../base/thread.h"

static __thread struct {
    uint64_t random;     /* xorshift state, 0: not seeded */
    uint64_t left_bytes; /* until the next stack */
} sampler __attribute__((tls_model("initial-exec")));

/* The mathematics library is not linked: what it would be loaded for are these two. */

/* Natural logarithm of a whole number, to eight digits. */
static double logarithm(uint64_t number)
{
    const double of_two = 0.69314718055994531;
    int exponent = 63 - __builtin_clzll(number);
    double mantissa = (double)number / (double)(UINT64_C(1) << exponent);
    double ratio = (mantissa - 1) / (mantissa + 1);
    double power = ratio, sum = 0;
    for (int odd = 1; odd <= 13; odd += 2, power *= ratio * ratio)
        sum += power / odd;
    return exponent * of_two + 2 * sum;
}

/* e to the minus x: by its series for x / 64, then squared six times. */
static double decay(double x)
{
    double small = -x / 64, term = 1, sum = 1;
    for (int i = 1; i <= 12; i++) {
        term *= small / i;
        sum += term;
    }
    for (int i = 0; i < 6; i++)
        sum *= sum;
    return sum;
}

static uint64_t next_random(void)
{
    uint64_t x = sampler.random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return sampler.random = x;
}

static uint64_t draw_distance(uint64_t mean_bytes)
{
    const double log_of_range = 36.7368005696771; /* of 2^53 */
    uint64_t number = (next_random() >> 11) + 1;
    return (uint64_t)((double)mean_bytes * (log_of_range - logarithm(number)));
}

static void start(uint64_t mean_bytes)
{
    uint64_t seed = gos_os.wall_ns() ^ (uint64_t)gos_thread_index() << 40;
    sampler.random = (seed ^ seed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) | 1;
    sampler.left_bytes = draw_distance(mean_bytes);
}

__attribute__((noinline)) bool gos_sample_draws(uint64_t bytes)
{
    uint64_t mean_bytes = gos_options.stack_sample;
    if (!sampler.random)
        start(mean_bytes);
    if (bytes < sampler.left_bytes) {
        sampler.left_bytes -= bytes;
        return false;
    }
    /* What is left has no memory of how far the last allocation overshot. */
    sampler.left_bytes = draw_distance(mean_bytes);
    return true;
}

uint64_t gos_sample_estimate(uint64_t bytes, uint64_t mean_bytes)
{
    double share = mean_bytes ? (double)bytes / (double)mean_bytes : 40;
    if (share >= 40) /* as good as certain */
        return bytes;
    if (share < 1e-6)
        return mean_bytes;
    return (uint64_t)((double)bytes / (1 - decay(share)) + 0.5);
}
