/* What sites held over the run. */
#include <errno.h>

#include "json_value.h"
#include "load.h"

static int load_moments(struct gos_loaded *loaded, struct gos_growth *growth, const json_t *from)
{
    const json_t *array = json_object_get(from, "moments");
    growth->moments =
        gos_load_array(loaded, from, "moments", sizeof *growth->moments, &growth->moment_count);
    if (growth->moment_count > 0 && !growth->moments)
        return -ENOMEM;
    for (size_t i = 0; i < growth->moment_count; i++) {
        const json_t *moment = json_array_get(array, i);
        growth->moments[i] =
            (struct gos_moment){.allocated_count = gos_value_number(moment, "allocated_count", 0),
                                .freed_count = gos_value_number(moment, "freed_count", 0),
                                .age_ms = (uint32_t)gos_value_number(moment, "age_ms", 0)};
    }
    return 0;
}

/* As many as there are moments, whatever the file has: what is missing is zero. */
static int load_bytes(struct gos_loaded *loaded, const struct gos_growth *growth,
                      struct gos_growth_series *series, const json_t *array)
{
    series->live_bytes =
        gos_scratch_alloc(&loaded->scratch, growth->moment_count * sizeof(*series->live_bytes));
    if (!series->live_bytes)
        return -ENOMEM;
    for (size_t i = 0; i < growth->moment_count; i++) {
        json_int_t value = json_integer_value(json_array_get(array, i));
        series->live_bytes[i] = value > 0 ? (uint64_t)value : 0;
    }
    return 0;
}

static int load_series(struct gos_loaded *loaded, struct gos_growth *growth, const json_t *from)
{
    const json_t *array = json_object_get(from, "series");
    size_t count = 0;
    growth->series = gos_load_array(loaded, from, "series", sizeof *growth->series, &count);
    if (count > 0 && !growth->series)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(array, i);
        struct gos_growth_series *series = &growth->series[i];
        series->site = (uint32_t)gos_value_number(one, "site", 0);
        series->device = (uint32_t)gos_value_number(one, "device", 0);
        series->oldest_ms = (uint32_t)gos_value_number(one, "oldest_ms", 0);
        if (load_bytes(loaded, growth, series, json_object_get(one, "live_bytes")) < 0)
            return -ENOMEM;
        growth->series_count++;
    }
    return 0;
}

int gos_load_growth(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *from = json_object_get(root, "growth");
    struct gos_growth *growth = &loaded->evidence.growth;
    int result = load_moments(loaded, growth, from);
    return result == 0 && growth->moment_count > 0 ? load_series(loaded, growth, from) : result;
}
