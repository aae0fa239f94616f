/* The rest of a report: pools, streams, processes, history, host, versions, environment. */
#include <errno.h>

#include "json_value.h"
#include "load.h"

static int load_pools(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *array = json_object_get(root, "pools");
    struct gos_evidence *evidence = &loaded->evidence;
    evidence->pools =
        gos_load_array(loaded, root, "pools", sizeof *evidence->pools, &evidence->pool_count);
    if (evidence->pool_count > 0 && !evidence->pools)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->pool_count; i++) {
        const json_t *from = json_array_get(array, i);
        evidence->pools[i] = (struct gos_pool_evidence){
            .pool = gos_value_number(from, "pool", 0),
            .device = (uint32_t)gos_value_number(from, "device", 0),
            .is_default = gos_value_bool(from, "is_default"),
            .imported = gos_value_bool(from, "imported"),
            .attributes_known = gos_value_bool(from, "attributes_known"),
            .reserved_bytes = gos_value_number(from, "reserved_bytes", 0),
            .used_bytes = gos_value_number(from, "used_bytes", 0),
            .threshold_bytes = gos_value_number(from, "threshold_bytes", UINT64_MAX),
            .live_bytes = gos_value_number(from, "live_bytes", 0),
        };
    }
    return 0;
}

static void load_fallbacks(struct gos_evidence *evidence, const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array) && i < GOS_FALLBACK_ROWS; i++) {
        const json_t *from = json_array_get(array, i);
        evidence->fallbacks[evidence->fallback_count++] = (struct gos_fallback_evidence){
            .way = gos_value_word(from, "way", gos_fallback_code, GOS_FALLBACK_COUNT,
                                  GOS_FALLBACK_SYNC),
            .device = (uint32_t)gos_value_number(from, "device", 0),
            .total = {gos_value_number(from, "live_bytes", 0),
                      gos_value_number(from, "live_count", 0)},
        };
    }
}

static const char *stream_state(unsigned state)
{
    static const char *const names[] = {"not asked", "running", "finished"};
    return names[state];
}

static int load_streams(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *array = json_object_get(root, "streams");
    struct gos_evidence *evidence = &loaded->evidence;
    evidence->streams =
        gos_load_array(loaded, root, "streams", sizeof *evidence->streams, &evidence->stream_count);
    if (evidence->stream_count > 0 && !evidence->streams)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->stream_count; i++) {
        const json_t *from = json_array_get(array, i);
        unsigned state = gos_value_word(from, "state", stream_state, 3, 0);
        evidence->streams[i] = (struct gos_stream_evidence){
            .stream = gos_value_number(from, "stream", 0),
            .context = gos_value_number(from, "context", 0),
            .device = (uint32_t)gos_value_number(from, "device", 0),
            .per_thread = gos_value_bool(from, "per_thread"),
            .of_other_thread = gos_value_bool(from, "of_other_thread"),
            .running = state == 1,
            .asked = state != 0,
            .freed_bytes = gos_value_number(from, "freed_bytes", 0),
        };
    }
    return 0;
}

static void load_process(struct gos_process_evidence *process, const json_t *from)
{
    process->device = (int)gos_value_signed(from, "device", -1);
    process->pid = (uint32_t)gos_value_number(from, "pid", 0);
    process->used_bytes = gos_value_number(from, "used_bytes", UINT64_MAX);
    process->relation = gos_value_word(from, "relation", gos_relation_code, 4, GOS_PROCESS_UNSEEN);
    process->zombie = gos_value_bool(from, "zombie");
    process->mps_server = gos_value_bool(from, "mps_server");
    process->uid = (uint32_t)gos_value_number(from, "uid", 0);
    gos_value_copy(from, "name", process->name, sizeof process->name);
}

static int load_processes(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *array = json_object_get(root, "processes");
    struct gos_evidence *evidence = &loaded->evidence;
    evidence->processes = gos_load_array(loaded, root, "processes", sizeof *evidence->processes,
                                         &evidence->process_count);
    if (evidence->process_count > 0 && !evidence->processes)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->process_count; i++)
        load_process(&evidence->processes[i], json_array_get(array, i));
    return 0;
}

static int load_events(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *array = json_object_get(root, "events");
    struct gos_evidence *evidence = &loaded->evidence;
    evidence->events_lost = gos_value_number(root, "events_lost", 0);
    evidence->events =
        gos_load_array(loaded, root, "events", sizeof *evidence->events, &evidence->event_count);
    if (evidence->event_count > 0 && !evidence->events)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->event_count; i++) {
        const json_t *from = json_array_get(array, i);
        evidence->events[i] = (struct gos_event){
            .wall_ns = gos_value_number(from, "wall_ns", 0),
            .what = gos_value_string(from, "what"),
            .result = (int)gos_value_signed(from, "result", 0),
            .tid = (int)gos_value_signed(from, "tid", 0),
            .device = (int)gos_value_signed(from, "device", -1),
            .bytes = gos_value_number(from, "bytes", 0),
        };
    }
    return 0;
}

static int load_versions(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *array = json_object_get(root, "versions");
    struct gos_evidence *evidence = &loaded->evidence;
    evidence->versions = gos_load_array(loaded, root, "versions", sizeof *evidence->versions,
                                        &evidence->version_count);
    if (evidence->version_count > 0 && !evidence->versions)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->version_count; i++) {
        const json_t *from = json_array_get(array, i);
        evidence->versions[i].what = gos_value_string(from, "what");
        evidence->versions[i].version = gos_value_string(from, "version");
        evidence->versions[i].path = gos_value_string(from, "path");
    }
    return 0;
}

static int load_environment(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *array = json_object_get(root, "environment");
    struct gos_evidence *evidence = &loaded->evidence;
    evidence->variables = gos_load_array(loaded, root, "environment", sizeof *evidence->variables,
                                         &evidence->variable_count);
    if (evidence->variable_count > 0 && !evidence->variables)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->variable_count; i++) {
        const json_t *from = json_array_get(array, i);
        evidence->variables[i].name = gos_value_text(from, "name");
        evidence->variables[i].value = gos_value_string(from, "value");
        evidence->variables[i].at_start = gos_value_string(from, "at_start");
    }
    return 0;
}

static void load_host(struct gos_evidence *evidence, const json_t *from)
{
    struct gos_host_evidence *host = &evidence->host;
    gos_value_copy(from, "hostname", host->hostname, sizeof host->hostname);
    host->memory_total_bytes = gos_value_number(from, "memory_total_bytes", 0);
    host->memory_available_bytes = gos_value_number(from, "memory_available_bytes", 0);
    host->address_limit_bytes = gos_value_number(from, "address_limit_bytes", UINT64_MAX);
    host->address_used_bytes = gos_value_number(from, "address_used_bytes", 0);
    host->locked_limit_bytes = gos_value_number(from, "locked_limit_bytes", UINT64_MAX);
    host->locked_used_bytes = gos_value_number(from, "locked_used_bytes", 0);
    host->pinned_used_bytes = gos_value_number(from, "pinned_used_bytes", 0);
    host->overcommit_mode = (int)gos_value_signed(from, "overcommit_mode", -1);
    host->commit_limit_bytes = gos_value_number(from, "commit_limit_bytes", 0);
    host->committed_bytes = gos_value_number(from, "committed_bytes", 0);
    host->cgroup_limit_bytes = gos_value_number(from, "cgroup_limit_bytes", UINT64_MAX);
    host->cgroup_used_bytes = gos_value_number(from, "cgroup_used_bytes", 0);
    host->map_count = gos_value_number(from, "map_count", 0);
    host->map_count_limit = gos_value_number(from, "map_count_limit", 0);
    gos_load_live(evidence->host_live, from);
}

int gos_load_place(struct gos_loaded *loaded, const json_t *root)
{
    static int (*const parts[])(struct gos_loaded *, const json_t *) = {
        load_pools, load_streams, load_processes, load_events, load_versions, load_environment,
    };
    int result = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && result == 0; i++)
        result = parts[i](loaded, root);
    load_fallbacks(&loaded->evidence, json_object_get(root, "fallback"));
    load_host(&loaded->evidence, json_object_get(root, "host"));
    return result;
}
