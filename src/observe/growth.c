#include "growth.h"

#include "../track/birth.h"

/* Each device that is in use, and the sites with most live bytes. */
#define SERIES_MAX 48
#define SITES_MAX 32

struct series {
    struct gos_history_series past[SERIES_MAX];
    uint64_t live_bytes[SERIES_MAX]; /* now */
    uint32_t oldest_ms[SERIES_MAX];
    size_t count;
};

static bool belongs(const struct gos_site_use *use)
{
    return use->device < GOS_DEVICE_MAX && gos_history_counts(use->kind);
}

static size_t find(const struct series *series, uint32_t site, uint32_t device)
{
    size_t i = 0;

    while (i < series->count && (series->past[i].site != site || series->past[i].device != device))
        i++;
    return i;
}

static void choose(struct series *series, uint32_t site, uint32_t device)
{
    if (series->count == SERIES_MAX || find(series, site, device) < series->count)
        return;
    series->past[series->count].site = site;
    series->past[series->count].device = device;
    series->oldest_ms[series->count++] = UINT32_MAX;
}

static void choose_devices(struct series *series, const struct gos_evidence *evidence)
{
    for (size_t i = 0; i < evidence->use_count && series->count < SERIES_MAX - SITES_MAX; i++)
        if (belongs(&evidence->uses[i]))
            choose(series, 0, evidence->uses[i].device);
}

static void choose_sites(struct series *series, const struct gos_evidence *evidence)
{
    for (size_t i = 0; i < evidence->use_count; i++)
        if (belongs(&evidence->uses[i]) && evidence->uses[i].site)
            choose(series, evidence->uses[i].site, evidence->uses[i].device);
}

static void add_now(struct series *series, size_t at, uint64_t bytes, uint32_t oldest_ms)
{
    if (at == series->count)
        return;
    series->live_bytes[at] += bytes;
    if (oldest_ms < series->oldest_ms[at])
        series->oldest_ms[at] = oldest_ms;
}

static void sum_up_now(struct series *series, const struct gos_evidence *evidence)
{
    for (size_t i = 0; i < evidence->use_count; i++) {
        const struct gos_site_use *use = &evidence->uses[i];

        if (!belongs(use))
            continue;
        add_now(series, find(series, 0, use->device), use->live_bytes, use->oldest_ms);
        if (use->site)
            add_now(series, find(series, use->site, use->device), gos_site_use_bytes(use),
                    use->oldest_ms);
    }
}

static bool make_room(struct gos_growth *growth, struct gos_scratch *scratch, size_t series_count)
{
    size_t moment_count = GOS_HISTORY_SAMPLES + 1;
    uint64_t *bytes = gos_scratch_alloc(scratch, series_count * moment_count * sizeof(*bytes));

    growth->moments = gos_scratch_alloc(scratch, moment_count * sizeof(*growth->moments));
    growth->series = gos_scratch_alloc(scratch, series_count * sizeof(*growth->series));
    if (!bytes || !growth->moments || !growth->series)
        return false;
    for (size_t i = 0; i < series_count; i++)
        growth->series[i].live_bytes = bytes + i * moment_count;
    return true;
}

static void fill_series(struct gos_growth *growth, const struct series *series, uint32_t samples)
{
    for (size_t i = 0; i < series->count; i++) {
        struct gos_growth_series *to = &growth->series[i];

        to->site = series->past[i].site;
        to->device = series->past[i].device;
        to->oldest_ms = series->oldest_ms[i];
        for (uint32_t k = 0; k < samples; k++)
            to->live_bytes[k] = (uint64_t)series->past[i].live_kib[k] << 10;
        to->live_bytes[samples] = series->live_bytes[i];
    }
}

static struct gos_moment now(const struct gos_evidence *evidence)
{
    return (struct gos_moment){.allocated_count = evidence->allocated_count,
                               .freed_count = evidence->freed_count,
                               .age_ms = gos_birth_age_ms()};
}

static void fill(struct gos_evidence *evidence, struct series *series)
{
    struct gos_growth *growth = &evidence->growth;

    if (!make_room(growth, &evidence->scratch, series->count)) {
        gos_evidence_incomplete(evidence, "live bytes over the run (no memory for the series)");
        return;
    }
    uint32_t samples = gos_history_copy(growth->moments, series->past, series->count);
    growth->moments[samples] = now(evidence);
    fill_series(growth, series, samples);
    growth->moment_count = samples + 1;
    growth->series_count = series->count;
}

void gos_growth_observe(struct gos_evidence *evidence)
{
    struct series *series = gos_scratch_alloc(&evidence->scratch, sizeof(*series));

    if (!series)
        return;
    choose_devices(series, evidence);
    choose_sites(series, evidence);
    sum_up_now(series, evidence);
    if (series->count > 0)
        fill(evidence, series);
}
