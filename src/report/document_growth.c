/* What sites held over the run. */
#include "document.h"

#include "../base/text.h"
#include "../diagnose/leak.h"
#include "screen_parts.h"

#define TEXT_SERIES 6
#define JSON_SERIES 24
#define PLACE_BYTES 200

static const struct gos_growth *growth_of(const struct gos_document *document)
{
    return &document->report->diagnosis->evidence->growth;
}

/* --- JSON --- */

static void emit_moments(const struct gos_growth *growth, struct gos_emitter *emitter)
{
    gos_emitter_array(emitter, "moments");
    for (size_t i = 0; i < growth->moment_count; i++) {
        gos_emitter_row(emitter, NULL);
        gos_emitter_count(emitter, GOS_FIELD("allocated_count", NULL),
                          growth->moments[i].allocated_count);
        gos_emitter_count(emitter, GOS_FIELD("freed_count", NULL), growth->moments[i].freed_count);
        gos_emitter_count(emitter, GOS_FIELD("age_ms", NULL), growth->moments[i].age_ms);
        gos_emitter_row_end(emitter);
    }
    gos_emitter_end(emitter);
}

static void emit_series(const struct gos_growth *growth, const struct gos_growth_series *series,
                        struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, NULL);
    gos_emitter_count(emitter, GOS_FIELD("site", NULL), series->site);
    gos_emitter_count(emitter, GOS_FIELD("device", NULL), series->device);
    gos_emitter_string(emitter, GOS_FIELD("trend", NULL),
                       gos_trend_code(gos_leak_trend(growth, series)));
    gos_emitter_count(emitter, GOS_FIELD("oldest_ms", NULL), series->oldest_ms);
    gos_emitter_array(emitter, "live_bytes");
    for (size_t i = 0; i < growth->moment_count; i++)
        gos_emitter_number_item(emitter, series->live_bytes[i]);
    gos_emitter_end(emitter);
    gos_emitter_row_end(emitter);
}

static void emit_json(const struct gos_growth *growth, struct gos_emitter *emitter)
{
    if (growth->moment_count == 0) {
        gos_emitter_null(emitter, GOS_FIELD("growth", NULL));
        return;
    }
    gos_emitter_object(emitter, "growth");
    emit_moments(growth, emitter);
    gos_emitter_array(emitter, "series");
    for (size_t i = 0; i < growth->series_count && i < JSON_SERIES; i++)
        emit_series(growth, &growth->series[i], emitter);
    gos_emitter_end(emitter);
    gos_emitter_end(emitter);
}

/* --- text --- */

static const char *trend_words(enum gos_trend trend)
{
    static const char *const words[GOS_TREND_COUNT] = {"", "", "in steps", "flattened", "steady"};
    return words[trend];
}

static uint64_t highest_of(const struct gos_growth *growth, const struct gos_growth_series *series)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < growth->moment_count; i++)
        if (series->live_bytes[i] > highest)
            highest = series->live_bytes[i];
    return highest;
}

/* Eight points of the run, by height. */
static void put_curve(struct gos_text *text, const struct gos_growth *growth,
                      const struct gos_growth_series *series)
{
    static const char levels[] = " .:-=+*#";
    uint64_t step = highest_of(growth, series) / 7;
    for (size_t i = 0; i < 8; i++) {
        uint64_t bytes = series->live_bytes[i * (growth->moment_count - 1) / 7];
        uint64_t level = step ? bytes / step : 0;
        gos_text_char(text, levels[level < 7 ? level : 7]);
    }
}

static void put_place(struct gos_text *text, const struct gos_document *document,
                      const struct gos_growth_series *series)
{
    if (series->site)
        gos_screen_place(text, document, series->site, 1);
    else
        gos_text_format(text, "GPU %u, all together", series->device);
}

static const struct gos_field columns[] = {
    {NULL, "from", 11},   {NULL, "to", 11},          {NULL, "course", -9},
    {NULL, "trend", -10}, {NULL, "line of code", 0},
};

static void series_line(const struct gos_document *document, const struct gos_growth_series *series,
                        struct gos_emitter *emitter)
{
    const struct gos_growth *growth = growth_of(document);
    char curve[16];
    char place[PLACE_BYTES];
    struct gos_text curve_text = gos_text_on(curve, sizeof curve);
    struct gos_text place_text = gos_text_on(place, sizeof place);
    put_curve(&curve_text, growth, series);
    put_place(&place_text, document, series);
    gos_emitter_row(emitter, NULL);
    gos_emitter_bytes(emitter, &columns[0], series->live_bytes[0]);
    gos_emitter_bytes(emitter, &columns[1], series->live_bytes[growth->moment_count - 1]);
    gos_emitter_string(emitter, &columns[2], curve);
    gos_emitter_string(emitter, &columns[3], trend_words(gos_leak_trend(growth, series)));
    gos_emitter_string(emitter, &columns[4], place);
    gos_emitter_row_end(emitter);
}

static uint64_t span_count(const struct gos_growth *growth)
{
    return growth->moments[growth->moment_count - 1].allocated_count -
           growth->moments[0].allocated_count;
}

/* A table of two or three points would say nothing. */
static void emit_text(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_growth *growth = growth_of(document);
    size_t limit = document->complete ? growth->series_count : TEXT_SERIES;
    if (growth->moment_count < GOS_TREND_POINTS_LEAST)
        return;
    gos_emitter_heading(emitter, "GROWTH of live memory over the last %llu allocations",
                        (unsigned long long)span_count(growth));
    gos_emitter_titles(emitter, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < growth->series_count && i < limit; i++)
        series_line(document, &growth->series[i], emitter);
}

void gos_document_growth(const struct gos_document *document, struct gos_emitter *emitter)
{
    if (gos_emitter_is_text(emitter))
        emit_text(document, emitter);
    else
        emit_json(growth_of(document), emitter);
}
