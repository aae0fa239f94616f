/* What frameworks said, from a report. */
#include <errno.h>

#include "json_value.h"
#include "load.h"

static const char *text_or_none(const json_t *from, const char *key)
{
    const char *text = gos_value_string(from, key);
    return text ? text : "";
}

static const char *state_code(unsigned state)
{
    return gos_setting_state_code(state);
}

static enum gos_setting_state load_state(const json_t *from, const char *key)
{
    return gos_value_word(from, key, state_code, 3, GOS_SETTING_UNKNOWN);
}

static void load_map(struct gos_framework_evidence *framework, const json_t *from)
{
    const json_t *map = json_object_get(from, "segments");
    framework->map_known = json_is_object(map);
    framework->segment_count = gos_value_number(map, "count", 0);
    framework->pinned_segment_count = gos_value_number(map, "pinned_count", 0);
    framework->piece_count = gos_value_number(map, "piece_count", 0);
    framework->piece_bytes = gos_value_number(map, "piece_bytes", 0);
    framework->fitting_bytes = gos_value_number(map, "fitting_bytes", 0);
    framework->largest_free_bytes = gos_value_number(from, "largest_free_bytes", 0);
}

static void load_framework(struct gos_framework_evidence *framework, const json_t *from)
{
    framework->name = text_or_none(from, "name");
    framework->device = (uint32_t)gos_value_number(from, "device", 0);
    framework->reserved_bytes = gos_value_number(from, "reserved_bytes", 0);
    framework->used_bytes = gos_value_number(from, "used_bytes", 0);
    framework->free_block_count = gos_value_number(from, "free_block_count", 0);
    framework->active_bytes = gos_value_number(from, "active_bytes", 0);
    framework->inactive_split_bytes = gos_value_number(from, "inactive_split_bytes", 0);
    framework->releasable_known = gos_value_has(from, "releasable_bytes");
    framework->releasable_bytes = gos_value_number(from, "releasable_bytes", 0);
    load_map(framework, from);
    framework->backend = text_or_none(from, "backend");
    framework->settings = text_or_none(from, "settings");
    framework->expandable = load_state(from, "expandable_segments");
    framework->max_split = load_state(from, "max_split");
    framework->collects = load_state(from, "collects");
    framework->limited = load_state(from, "limited");
    framework->in_driver_pools = gos_value_bool(from, "in_driver_pools");
    framework->limit_bytes = gos_value_number(from, "limit_bytes", 0);
    framework->pinned_free_count = gos_value_number(from, "pinned_free_count", 0);
    framework->is_late = gos_value_bool(from, "late");
    framework->after_ns = gos_value_number(from, "after_ns", 0);
}

static const char *part_code(unsigned part)
{
    return gos_part_code(part);
}

static int load_lines(struct gos_loaded *loaded, const json_t *root)
{
    struct gos_evidence *evidence = &loaded->evidence;
    const json_t *array = json_object_get(root, "framework_lines");
    evidence->framework_lines =
        gos_load_array(loaded, root, "framework_lines", sizeof *evidence->framework_lines,
                       &evidence->framework_line_count);
    if (evidence->framework_line_count > 0 && !evidence->framework_lines)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->framework_line_count; i++) {
        const json_t *from = json_array_get(array, i);
        evidence->framework_lines[i] = (struct gos_framework_line){
            .framework = text_or_none(from, "framework"),
            .device = (uint32_t)gos_value_number(from, "device", 0),
            .part = gos_value_word(from, "part", part_code, 3, GOS_PART_REST),
            .bytes = gos_value_number(from, "bytes", 0),
            .count = gos_value_number(from, "count", 0),
            .label = text_or_none(from, "label"),
        };
    }
    return 0;
}

int gos_load_frameworks(struct gos_loaded *loaded, const json_t *root)
{
    struct gos_evidence *evidence = &loaded->evidence;
    const json_t *array = json_object_get(root, "frameworks");
    evidence->torch_snapshot = gos_value_string(root, "torch_snapshot");
    evidence->frameworks = gos_load_array(loaded, root, "frameworks", sizeof *evidence->frameworks,
                                          &evidence->framework_count);
    if (evidence->framework_count > 0 && !evidence->frameworks)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->framework_count; i++)
        load_framework(&evidence->frameworks[i], json_array_get(array, i));
    return load_lines(loaded, root);
}
