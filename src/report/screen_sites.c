/* The lines of the first screen that each name a site and what it holds. */
#include <string.h>

#include "../diagnose/code_place.h"
#include "screen_parts.h"

struct site_line {
    uint32_t site;
    bool is_about;
    uint64_t bytes;
    uint64_t count;
    const char *unit;
};

/* The first is dropped last (screen_lines.h). */
#define SITE_LINES 3
static const uint8_t importance_of[SITE_LINES] = {6, 5, 2};

static bool reads_alike(const struct gos_document *document, uint32_t one, uint32_t other,
                        unsigned limit)
{
    char buffers[2][GOS_SCREEN_WORDS];
    struct gos_text left = gos_text_on(buffers[0], sizeof buffers[0]);
    struct gos_text right = gos_text_on(buffers[1], sizeof buffers[1]);
    gos_screen_place(&left, document, one, limit);
    gos_screen_place(&right, document, other, limit);
    return strcmp(buffers[0], buffers[1]) == 0;
}

/* As many frames as tell the site from the others that are shown. */
static unsigned frames_needed(const struct gos_document *document, const struct site_line *lines,
                              unsigned count, uint32_t site)
{
    unsigned limit = 1;
    for (unsigned i = 0; i < count; i++) {
        while (limit < GOS_CODE_LINES_MAX && lines[i].site != site &&
               reads_alike(document, lines[i].site, site, limit))
            limit++;
    }
    return limit;
}

static void add_site_line(struct gos_screen *screen, const struct gos_document *document,
                          uint8_t importance, const struct site_line *line, unsigned frames)
{
    char buffer[GOS_SCREEN_WORDS];
    char amount[32];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    struct gos_text number = gos_text_on(amount, sizeof amount);
    gos_text_put(&number, line->is_about ? "about " : "");
    gos_text_bytes(&number, line->bytes);
    gos_text_format(&text, "%10s  %llu %s  ", amount, (unsigned long long)line->count, line->unit);
    gos_screen_place(&text, document, line->site, frames);
    if (frames > 1) /* what tells it apart is likely on its second line */
        gos_screen_add(screen, (uint8_t)(importance + 1), "", buffer, 2);
    else
        gos_screen_add(screen, importance, "", buffer, 1);
}

static const struct gos_diagnosis *diagnosis_of(const struct gos_document *document)
{
    return document->report->diagnosis;
}

static bool is_failure(const struct gos_document *document)
{
    return diagnosis_of(document)->evidence->request.api != NULL;
}

static bool matters(const struct gos_document *document, const struct gos_site_use *use)
{
    int device = diagnosis_of(document)->device;
    if (use->is_estimated && !use->site) /* others stand for it */
        return false;
    if (!is_failure(document))
        return true;
    if (device < 0)
        return use->device == GOS_DEVICE_HOST;
    return use->device == (uint32_t)device &&
           (gos_kind_on_device_books(use->kind) || use->kind == GOS_KIND_POOL ||
            use->kind == GOS_KIND_MANAGED || use->kind == GOS_KIND_GRAPH);
}

static void add_site_lines(struct gos_screen *screen, const struct gos_document *document,
                           const struct site_line *lines, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        add_site_line(screen, document, importance_of[i], &lines[i],
                      frames_needed(document, lines, count, lines[i].site));
}

static struct site_line line_of(const struct gos_site_use *use)
{
    const char *unit = use->live_count == 1 ? "allocation" : "allocations";
    if (use->kind == GOS_KIND_MANAGED)
        unit = "managed";
    return (struct site_line){.site = use->site,
                              .is_about = use->is_estimated,
                              .bytes = gos_site_use_bytes(use),
                              .count = use->live_count,
                              .unit = use->is_estimated ? "sampled" : unit};
}

static void add_largest_sites(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_evidence *evidence = diagnosis_of(document)->evidence;
    struct site_line lines[SITE_LINES];
    unsigned count = 0;
    for (size_t i = 0; i < evidence->use_count && count < SITE_LINES; i++) {
        if (matters(document, &evidence->uses[i]))
            lines[count++] = line_of(&evidence->uses[i]);
    }
    add_site_lines(screen, document, lines, count);
}

static void add_pins(struct gos_screen *screen, const struct gos_document *document,
                     const struct gos_fragmentation *fragmentation)
{
    struct site_line lines[SITE_LINES];
    unsigned count = 0;
    for (; count < fragmentation->pin_count && count < SITE_LINES; count++)
        lines[count] = (struct site_line){.site = fragmentation->pins[count].site,
                                          .bytes = fragmentation->pins[count].stuck_bytes,
                                          .count = fragmentation->pins[count].blocks,
                                          .unit = "blocks pinned by"};
    add_site_lines(screen, document, lines, count);
}

/* Where a framework that refused memory tells who holds what it has. */
static bool add_framework_lines(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_evidence *evidence = diagnosis_of(document)->evidence;
    unsigned count = 0;
    for (size_t i = 0; i < evidence->framework_line_count && count < SITE_LINES; i++) {
        const struct gos_framework_line *line = &evidence->framework_lines[i];
        char buffer[GOS_SCREEN_WORDS];
        char amount[32];
        struct gos_text text = gos_text_on(buffer, sizeof buffer);
        struct gos_text number = gos_text_on(amount, sizeof amount);
        if (line->part != GOS_PART_ARRAYS || !evidence->request.is_word ||
            strcmp(line->framework, evidence->request.api) != 0 ||
            line->device != (uint32_t)diagnosis_of(document)->device)
            continue;
        gos_text_bytes(&number, line->bytes);
        gos_text_format(&text, "%10s  %llu %s  %s", amount, (unsigned long long)line->count,
                        line->count == 1 ? "array" : "arrays", line->label);
        gos_screen_add(screen, importance_of[count++], "", buffer, 1);
    }
    return count > 0;
}

void gos_screen_sites(struct gos_screen *screen, const struct gos_document *document)
{
    const struct gos_diagnosis *diagnosis = document->report->diagnosis;
    int device = diagnosis->device;
    if (diagnosis->verdict.code == GOS_VERDICT_EXHAUSTED_BY_OTHERS && is_failure(document))
        return;
    if (diagnosis->verdict.code == GOS_VERDICT_FRAGMENTED && device >= 0 &&
        diagnosis->fragmentation[device].pin_count > 0)
        add_pins(screen, document, &diagnosis->fragmentation[device]);
    else if (!add_framework_lines(screen, document))
        add_largest_sites(screen, document);
}
