#include "leak.h"

#include "../track/site.h"
#include "code_place.h"
#include "saturate.h"

typedef uint64_t clock_of_points[GOS_TREND_POINTS_MOST];

/* The newest points, as many as the test takes. */
static size_t points_of(const struct gos_growth *growth, size_t *skip, clock_of_points at)
{
    *skip = gos_beyond(growth->moment_count, GOS_TREND_POINTS_MOST);
    size_t count = growth->moment_count - *skip;
    for (size_t i = 0; i < count; i++)
        at[i] = growth->moments[*skip + i].allocated_count;
    return count;
}

enum gos_trend gos_leak_trend(const struct gos_growth *growth,
                              const struct gos_growth_series *series)
{
    clock_of_points at;
    size_t skip;
    size_t count = points_of(growth, &skip, at);
    return gos_trend_of(at, series->live_bytes + skip, count);
}

uint64_t gos_leak_pace(const struct gos_growth *growth, const struct gos_growth_series *series)
{
    clock_of_points at;
    size_t skip;
    size_t count = points_of(growth, &skip, at);
    return gos_trend_pace(at, series->live_bytes + skip, count, 1000);
}

const struct gos_growth_series *gos_leak_series(const struct gos_growth *growth, uint32_t site,
                                                uint32_t device)
{
    for (size_t i = 0; i < growth->series_count; i++)
        if (growth->series[i].site == site && growth->series[i].device == device)
            return &growth->series[i];
    return NULL;
}

static uint64_t growth_of(const struct gos_growth *growth, const struct gos_growth_series *series)
{
    return gos_trend_growth(series->live_bytes, growth->moment_count);
}

static uint64_t later_growth(const struct gos_growth *growth,
                             const struct gos_growth_series *series)
{
    size_t skip = growth->moment_count / 2;
    return gos_trend_growth(series->live_bytes + skip, growth->moment_count - skip);
}

/* Was what it holds longest already there when its growth had begun? */
static bool keeps_from_the_start(const struct gos_growth *growth,
                                 const struct gos_growth_series *series)
{
    uint64_t begun = series->live_bytes[0] + growth_of(growth, series) / 4;
    size_t i = 0;
    while (i + 1 < growth->moment_count && series->live_bytes[i] < begun)
        i++;
    return series->oldest_ms <= growth->moments[i].age_ms;
}

static bool others_came_and_went(const struct gos_growth *growth,
                                 const struct gos_growth_series *series)
{
    size_t rises = 0;
    size_t busy = 0;
    for (size_t i = 1; i < growth->moment_count; i++) {
        if (series->live_bytes[i] <= series->live_bytes[i - 1])
            continue;
        rises++;
        busy += growth->moments[i].freed_count > growth->moments[i - 1].freed_count;
    }
    return 4 * busy >= 3 * rises;
}

/* Most of the device's growth; and the device grew with it, rather than others shrank for it. */
static bool is_most(uint64_t part, uint64_t whole)
{
    return part > whole / 2 && part / 2 <= whole;
}

/* The two sites of the device that grew steadily and most; returns how many there are. */
static size_t rank_growers(const struct gos_growth *growth, uint32_t device, struct gos_leak *leak)
{
    uint64_t most = 0;
    uint64_t second = 0;
    size_t count = 0;
    for (size_t i = 0; i < growth->series_count; i++) {
        const struct gos_growth_series *series = &growth->series[i];
        if (series->site == 0 || series->device != device ||
            gos_leak_trend(growth, series) != GOS_TREND_STEADY)
            continue;
        uint64_t grown = growth_of(growth, series);
        count++;
        if (grown > most) {
            leak->next = leak->site;
            second = most;
            leak->site = series;
            most = grown;
        } else if (grown > second) {
            leak->next = series;
            second = grown;
        }
    }
    return count;
}

static bool is_kept_by_one(const struct gos_growth *growth, uint64_t missing_bytes,
                           struct gos_leak *leak)
{
    uint64_t part = later_growth(growth, leak->site);
    uint64_t whole = later_growth(growth, leak->device);
    leak->grown_bytes = growth_of(growth, leak->site);
    if (leak->grown_bytes < missing_bytes || !is_most(part, whole) ||
        !keeps_from_the_start(growth, leak->site))
        return false;
    leak->share_permille = (uint32_t)gos_lesser(1000, part / (whole / 1000 + 1));
    return true;
}

static bool is_by_many(const struct gos_growth *growth, uint64_t missing_bytes, size_t growers,
                       struct gos_leak *leak)
{
    leak->grown_bytes = growth_of(growth, leak->device);
    return growers >= 2 && leak->grown_bytes > 0 && leak->grown_bytes >= missing_bytes &&
           !is_most(later_growth(growth, leak->site), later_growth(growth, leak->device));
}

/* --- several ways to one line --- */

static bool agree(uint32_t one, uint32_t other, unsigned lines)
{
    const struct gos_site *first = gos_site_get(one);
    const struct gos_site *second = gos_site_get(other);
    return first && second && first->tag == second->tag &&
           gos_code_same_lines(first, second, lines);
}

bool gos_leak_has(const struct gos_leak *leak, uint32_t site)
{
    return site == leak->site->site || (leak->lines && agree(site, leak->site->site, leak->lines));
}

static bool is_member(const struct gos_growth_series *series, const struct gos_growth_series *of,
                      unsigned lines)
{
    return series->site != 0 && series->device == of->device &&
           (series == of || agree(series->site, of->site, lines));
}

static void add_up(const struct gos_growth *growth, const struct gos_growth_series *series,
                   struct gos_leak *leak)
{
    struct gos_growth_series *sum = &leak->sum;
    for (size_t i = 0; i < growth->moment_count; i++)
        sum->live_bytes[i] = gos_plus(sum->live_bytes[i], series->live_bytes[i]);
    if (series->oldest_ms < sum->oldest_ms)
        sum->oldest_ms = series->oldest_ms;
    leak->way_count++;
}

/* False unless all that have these lines in common grew, what failed included. */
static bool add_up_ways(const struct gos_evidence *evidence, const struct gos_growth_series *of,
                        unsigned lines, struct gos_leak *leak)
{
    const struct gos_growth *growth = &evidence->growth;
    uint32_t failed = evidence->request.site;
    bool failed_is_one = lines == GOS_FRAME_MAX || !agree(failed, of->site, lines);
    leak->sum = *of;
    leak->sum.live_bytes = leak->sum_bytes;
    leak->way_count = 0;
    for (size_t i = 0; i < growth->moment_count; i++)
        leak->sum_bytes[i] = 0;
    for (size_t i = 0; i < growth->series_count; i++) {
        if (!is_member(&growth->series[i], of, lines))
            continue;
        if (growth_of(growth, &growth->series[i]) == 0)
            return false;
        failed_is_one |= growth->series[i].site == failed;
        add_up(growth, &growth->series[i], leak);
    }
    return failed_is_one && leak->way_count > 1;
}

/* The one that grew most of those with the same lines stands for them. */
static bool stands_for_them(const struct gos_growth *growth, const struct gos_growth_series *series,
                            unsigned lines)
{
    for (size_t i = 0; i < growth->series_count; i++) {
        const struct gos_growth_series *other = &growth->series[i];
        uint64_t grown = growth_of(growth, other);
        uint64_t own = growth_of(growth, series);
        if ((grown > own || (grown == own && other < series)) && is_member(other, series, lines))
            return false;
    }
    return true;
}

/* Only one line can have most of the growth: the first that does is it. */
static bool is_kept_by_ways(const struct gos_evidence *evidence, uint32_t device, unsigned lines,
                            uint64_t missing_bytes, struct gos_leak *leak)
{
    const struct gos_growth *growth = &evidence->growth;
    for (size_t i = 0; i < growth->series_count; i++) {
        const struct gos_growth_series *series = &growth->series[i];
        if (series->site == 0 || series->device != device ||
            !stands_for_them(growth, series, lines) || !add_up_ways(evidence, series, lines, leak))
            continue;
        leak->site = &leak->sum;
        leak->lines = lines;
        if (is_kept_by_one(growth, missing_bytes, leak) &&
            gos_leak_trend(growth, leak->site) == GOS_TREND_STEADY)
            return true;
    }
    return false;
}

static bool is_kept_by_line(const struct gos_evidence *evidence, uint32_t device,
                            uint64_t missing_bytes, struct gos_leak *leak)
{
    static const unsigned depths[] = {GOS_FRAME_MAX, 3, 2, 1};
    const struct gos_growth_series *site = leak->site;
    if (evidence->growth.moment_count > GOS_TREND_POINTS_MOST)
        return false;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
        if (is_kept_by_ways(evidence, device, depths[i], missing_bytes, leak))
            return true;
    leak->site = site;
    leak->lines = 0;
    return false;
}

/* --- all together --- */

static enum gos_growth_kind kind_of(const struct gos_evidence *evidence, uint32_t device,
                                    uint64_t missing_bytes, struct gos_leak *leak)
{
    const struct gos_growth *growth = &evidence->growth;
    if (!leak->device)
        return GOS_GROWTH_NONE;
    size_t growers = rank_growers(growth, device, leak);
    if ((leak->site && is_kept_by_one(growth, missing_bytes, leak)) ||
        is_kept_by_line(evidence, device, missing_bytes, leak))
        return others_came_and_went(growth, leak->site) ? GOS_GROWTH_LEAK : GOS_GROWTH_UNFREED;
    return is_by_many(growth, missing_bytes, growers, leak) ? GOS_GROWTH_OF_MANY : GOS_GROWTH_NONE;
}

void gos_leak_find(const struct gos_evidence *evidence, uint32_t device, uint64_t missing_bytes,
                   struct gos_leak *leak)
{
    *leak = (struct gos_leak){.device = gos_leak_series(&evidence->growth, 0, device)};
    leak->kind = kind_of(evidence, device, missing_bytes, leak);
    if (leak->kind == GOS_GROWTH_NONE)
        leak->site = NULL;
    if (leak->kind != GOS_GROWTH_OF_MANY)
        leak->next = NULL;
}
