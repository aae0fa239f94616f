#include "trend.h"

#include <stdbool.h>

#include "../observe/sort.h"

#define POINTS GOS_TREND_POINTS_MOST
#define PAIRS (POINTS * (POINTS - 1) / 2)

/* Squares of what trend.h says, because a root would need the mathematics library. */
#define TREND_DEVIATIONS_SQUARED (3.3 * 3.3)
#define STEPS_DEVIATIONS_SQUARED (2.6 * 2.6)
#define LATER_SHARE (2.0 / 3.0)
#define SLOW_SHARE (1.0 / 2.0)
#define CHANCE_OF_LULL 0.01
#define LATELY_LEAST 5

struct points {
    const uint64_t *at;
    const uint64_t *bytes;
    size_t count;
};

static struct points without(struct points points, size_t skip)
{
    return (struct points){points.at + skip, points.bytes + skip, points.count - skip};
}

static struct points newest(const uint64_t *at, const uint64_t *bytes, size_t count)
{
    size_t skip = count > POINTS ? count - POINTS : 0;
    return without((struct points){at, bytes, count}, skip);
}

static struct points later_half(struct points points)
{
    return without(points, points.count / 2);
}

static struct points last_quarter(struct points points)
{
    size_t most = points.count / 4 > LATELY_LEAST ? points.count / 4 : LATELY_LEAST;
    return without(points, points.count > most ? points.count - most : 0);
}

/* Exact: the difference of two sizes fits. */
static double change(const struct points *points, size_t from, size_t to)
{
    return (double)(int64_t)(points->bytes[to] - points->bytes[from]);
}

static int sign_of(double value)
{
    return (value > 0) - (value < 0);
}

/* --- Mann-Kendall --- */

static int rank_sum(const struct points *points)
{
    int sum = 0;
    for (size_t i = 0; i < points->count; i++)
        for (size_t j = i + 1; j < points->count; j++)
            sum += sign_of(change(points, i, j));
    return sum;
}

static bool is_seen_before(const struct points *points, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (points->bytes[i] == points->bytes[at])
            return true;
    return false;
}

static double variance_term(size_t count)
{
    double n = (double)count;
    return n * (n - 1) * (2 * n + 5);
}

/* 18 times the variance of S; each group of equal points takes its part away. */
static double variance_times_18(const struct points *points)
{
    double variance = variance_term(points->count);
    for (size_t i = 0; i < points->count; i++) {
        size_t equal = 1;
        if (is_seen_before(points, i))
            continue;
        for (size_t j = i + 1; j < points->count; j++)
            equal += points->bytes[j] == points->bytes[i];
        variance -= variance_term(equal);
    }
    return variance;
}

/* One less than S, because S is a whole number and the normal distribution is not. */
static bool has_trend(const struct points *points)
{
    double s = rank_sum(points) - 1;
    return s > 0 && s * s * 18 >= TREND_DEVIATIONS_SQUARED * variance_times_18(points);
}

/* --- steps --- */

static bool rises_like_no_coin(const struct points *points)
{
    int excess = 0;
    int moved = 0;
    for (size_t i = 1; i < points->count; i++) {
        int sign = sign_of(change(points, i - 1, i));
        excess += sign;
        moved += sign != 0;
    }
    return excess > 0 && (double)excess * excess >= STEPS_DEVIATIONS_SQUARED * moved;
}

static bool is_spread(const struct points *points)
{
    double largest = 0;
    double second = 0;
    for (size_t i = 1; i < points->count; i++) {
        double rise = change(points, i - 1, i);
        if (rise > largest) {
            second = largest;
            largest = rise;
        } else if (rise > second) {
            second = rise;
        }
    }
    return 2 * (largest + second) < change(points, 0, points->count - 1);
}

/* --- Theil-Sen --- */

static bool is_less(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b;
}

static size_t slopes_of(const struct points *points, double slopes[PAIRS])
{
    size_t count = 0;
    for (size_t i = 0; i < points->count; i++)
        for (size_t j = i + 1; j < points->count; j++)
            if (points->at[j] > points->at[i])
                slopes[count++] = change(points, i, j) / (double)(points->at[j] - points->at[i]);
    return count;
}

/* Bytes for one of the clock. */
static double median_slope(struct points points)
{
    double slopes[PAIRS];
    size_t count = slopes_of(&points, slopes);
    if (count == 0)
        return 0;
    gos_sort_heap(slopes, count, sizeof(slopes[0]), is_less);
    return (slopes[(count - 1) / 2] + slopes[count / 2]) / 2;
}

static bool is_slow(const struct points *points, size_t to, double pace)
{
    double passed = (double)(points->at[to] - points->at[to - 1]);
    return change(points, to - 1, to) < SLOW_SHARE * pace * passed;
}

/* Of so many slow intervals at the end, by how usual such were before. */
static double chance_of_lull(const struct points *points, double pace)
{
    size_t last = points->count - 1;
    while (last > 0 && is_slow(points, last, pace))
        last--;
    size_t slow = 0;
    for (size_t i = 1; i <= last; i++)
        slow += is_slow(points, i, pace);
    double chance = 1;
    for (size_t i = last + 1; i < points->count; i++)
        chance *= (double)(slow + 1) / (double)(last + 2);
    return chance;
}

static bool goes_on(struct points points)
{
    double pace = median_slope(points);
    double later = median_slope(later_half(points));
    return later > 0 && later >= LATER_SHARE * pace &&
           chance_of_lull(&points, pace) >= CHANCE_OF_LULL;
}

/* --- all together --- */

enum gos_trend gos_trend_of(const uint64_t *at, const uint64_t *bytes, size_t count)
{
    struct points points = newest(at, bytes, count);
    if (points.count < GOS_TREND_POINTS_LEAST)
        return GOS_TREND_UNKNOWN;
    if (!has_trend(&points) || !rises_like_no_coin(&points))
        return GOS_TREND_NONE;
    if (!is_spread(&points))
        return GOS_TREND_STEPS;
    return goes_on(points) ? GOS_TREND_STEADY : GOS_TREND_FLATTENED;
}

uint64_t gos_trend_pace(const uint64_t *at, const uint64_t *bytes, size_t count, uint64_t per)
{
    double pace = median_slope(last_quarter(newest(at, bytes, count))) * (double)per;
    return pace > 0 && pace < 9e18 ? (uint64_t)(pace + 0.5) : 0;
}

static uint64_t median_of_three(const uint64_t *three)
{
    uint64_t low = three[0] < three[1] ? three[0] : three[1];
    uint64_t high = three[0] < three[1] ? three[1] : three[0];
    if (three[2] < low)
        return low;
    return three[2] < high ? three[2] : high;
}

uint64_t gos_trend_growth(const uint64_t *bytes, size_t count)
{
    if (count < 6)
        return 0;
    uint64_t first = median_of_three(bytes);
    uint64_t last = median_of_three(bytes + count - 3);
    return last > first ? last - first : 0;
}

const char *gos_trend_code(enum gos_trend trend)
{
    static const char *const codes[GOS_TREND_COUNT] = {"unknown", "none", "steps", "flattened",
                                                       "steady"};
    return (unsigned)trend < GOS_TREND_COUNT ? codes[trend] : "unknown";
}
