/* What frameworks said they hold: one entry for each framework and device. */
#include "document.h"

#include "../base/text.h"
#include "../diagnose/framework.h"

static const char *const state_codes[] = {"unknown", "off", "on"};

const char *gos_setting_state_code(enum gos_setting_state state)
{
    return state_codes[state];
}

static void emit_amounts(const struct gos_framework_evidence *framework,
                         struct gos_emitter *emitter)
{
    gos_emitter_bytes(emitter, GOS_FIELD("reserved_bytes", "reserved"), framework->reserved_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("used_bytes", "in use"), framework->used_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("idle_bytes", "reserved, unused"),
                      framework->reserved_bytes - framework->used_bytes);
    gos_emitter_bytes_if(emitter, GOS_FIELD("releasable_bytes", "of that it could give back"),
                         framework->releasable_known, framework->releasable_bytes);
    gos_emitter_bytes_if(emitter, GOS_FIELD("largest_free_bytes", "largest unused block"),
                         framework->map_known || framework->largest_free_bytes,
                         framework->largest_free_bytes);
    gos_emitter_count(
        emitter,
        GOS_FIELD("free_block_count", framework->free_block_count ? "unused blocks" : NULL),
        framework->free_block_count);
    gos_emitter_bytes(emitter, GOS_FIELD("active_bytes", NULL), framework->active_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("inactive_split_bytes", NULL),
                      framework->inactive_split_bytes);
}

static void emit_map(const struct gos_framework_evidence *framework, struct gos_emitter *emitter)
{
    if (!framework->map_known) {
        gos_emitter_null(emitter, GOS_FIELD("segments", NULL));
        return;
    }
    gos_emitter_object(emitter, "segments");
    gos_emitter_count(emitter, GOS_FIELD("count", "segments"), framework->segment_count);
    gos_emitter_count(emitter, GOS_FIELD("pinned_count", "in use only in part"),
                      framework->pinned_segment_count);
    gos_emitter_count(emitter, GOS_FIELD("piece_count", "unused pieces in those"),
                      framework->piece_count);
    gos_emitter_bytes(emitter, GOS_FIELD("piece_bytes", "their sum"), framework->piece_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("fitting_bytes", "in blocks as large as the request"),
                      framework->fitting_bytes);
    gos_emitter_end(emitter);
}

static void emit_settings(const struct gos_framework_evidence *framework,
                          struct gos_emitter *emitter)
{
    bool is_torch = framework->backend[0] != '\0';
    gos_emitter_string(emitter, GOS_FIELD("backend", is_torch ? "allocator" : NULL),
                       framework->backend);
    gos_emitter_string(emitter, GOS_FIELD("settings", framework->settings[0] ? "set to" : NULL),
                       framework->settings);
    gos_emitter_string(emitter,
                       GOS_FIELD("expandable_segments", is_torch ? "expandable segments" : NULL),
                       gos_setting_state_code(framework->expandable));
    gos_emitter_string(emitter, GOS_FIELD("max_split", NULL),
                       gos_setting_state_code(framework->max_split));
    gos_emitter_string(emitter, GOS_FIELD("collects", NULL),
                       gos_setting_state_code(framework->collects));
    gos_emitter_string(
        emitter, GOS_FIELD("limited", framework->limited == GOS_SETTING_ON ? "own limit" : NULL),
        gos_setting_state_code(framework->limited));
    gos_emitter_bytes_if(
        emitter, GOS_FIELD("limit_bytes", framework->limit_bytes ? "may take at most" : NULL),
        framework->limit_bytes != 0, framework->limit_bytes);
    gos_emitter_bool(emitter, GOS_FIELD("in_driver_pools", NULL), framework->in_driver_pools);
    gos_emitter_count(
        emitter,
        GOS_FIELD("pinned_free_count", framework->pinned_free_count ? "idle pinned blocks" : NULL),
        framework->pinned_free_count);
}

static void emit_framework(const struct gos_framework_evidence *framework,
                           struct gos_emitter *emitter)
{
    gos_emitter_object(emitter, NULL);
    gos_emitter_line(emitter, "  %s on GPU %u", framework->name, framework->device);
    gos_emitter_string(emitter, GOS_FIELD("name", NULL), framework->name);
    gos_emitter_count(emitter, GOS_FIELD("device", NULL), framework->device);
    emit_amounts(framework, emitter);
    emit_map(framework, emitter);
    emit_settings(framework, emitter);
    gos_emitter_bool(emitter,
                     GOS_FIELD("late", framework->is_late ? "only when the call was over" : NULL),
                     framework->is_late);
    gos_emitter_duration(emitter, GOS_FIELD("after_ns", framework->after_ns ? "told after" : NULL),
                         framework->after_ns);
    gos_emitter_end(emitter);
}

const char *gos_part_code(enum gos_framework_part part)
{
    static const char *const codes[] = {"arrays", "programs", "rest"};
    return codes[part];
}

static void emit_line(const struct gos_framework_line *line, const struct gos_field *fields,
                      struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, NULL);
    gos_emitter_string(emitter, fields++, line->framework);
    gos_emitter_count(emitter, fields++, line->device);
    gos_emitter_string(emitter, fields++, gos_part_code(line->part));
    gos_emitter_bytes(emitter, fields++, line->bytes);
    gos_emitter_count(emitter, fields++, line->count);
    gos_emitter_string(emitter, fields++, line->label);
    gos_emitter_row_end(emitter);
}

static void emit_lines(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"framework", "framework", -9}, {"device", "GPU", 3},  {"part", "what", -8},
        {"bytes", "held", 11},          {"count", "count", 8}, {"label", "made at", 0},
    };
    if (evidence->framework_line_count > 0) {
        gos_emitter_heading(emitter, "HELD BY LINES OF THE PROGRAM, as frameworks say");
        gos_emitter_titles(emitter, fields, sizeof fields / sizeof fields[0]);
    }
    gos_emitter_array(emitter, "framework_lines");
    for (size_t i = 0; i < evidence->framework_line_count; i++)
        emit_line(&evidence->framework_lines[i], fields, emitter);
    gos_emitter_end(emitter);
}

void gos_document_frameworks(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    const char *snapshot = evidence->torch_snapshot;
    if (evidence->framework_count > 0 || snapshot)
        gos_emitter_heading(emitter, "FRAMEWORKS, as they say themselves");
    gos_emitter_array(emitter, "frameworks");
    for (size_t i = 0; i < evidence->framework_count; i++)
        emit_framework(&evidence->frameworks[i], emitter);
    gos_emitter_end(emitter);
    emit_lines(evidence, emitter);
    gos_emitter_string(emitter, GOS_FIELD("torch_snapshot", snapshot ? "torch's snapshot" : NULL),
                       snapshot);
}
