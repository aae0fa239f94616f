/* Everything around the device's memory: pools, streams, processes, history, host, versions. */
#include "document.h"

#include "../cuda/error.h"

#define BRIEF_EVENTS 32
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

const char *gos_relation_code(enum gos_relation relation)
{
    static const char *const codes[] = {"self", "child", "other", "unseen"};
    return codes[relation];
}

/* A table has a heading only where it has rows. */
static void open_table(struct gos_emitter *emitter, const char *key, const char *heading,
                       const struct gos_field *fields, size_t field_count, size_t row_count)
{
    if (row_count > 0) {
        gos_emitter_heading(emitter, "%s", heading);
        gos_emitter_titles(emitter, fields, field_count);
    }
    gos_emitter_array(emitter, key);
}

/* --- pools and streams --- */

static void emit_pool(const struct gos_pool_evidence *pool, const struct gos_field *field,
                      struct gos_emitter *emitter)
{
    bool known = pool->attributes_known;
    gos_emitter_row(emitter, NULL);
    gos_emitter_handle(emitter, field++, pool->pool);
    gos_emitter_count(emitter, field++, pool->device);
    gos_emitter_bytes_if(emitter, field++, known, pool->reserved_bytes);
    gos_emitter_bytes_if(emitter, field++, known, pool->used_bytes);
    gos_emitter_bytes(emitter, field++, pool->live_bytes);
    gos_emitter_bytes_if(emitter, field++, known && pool->threshold_bytes != UINT64_MAX,
                         pool->threshold_bytes);
    gos_emitter_bool(emitter, field++, pool->is_default);
    gos_emitter_bool(emitter, field++, pool->imported);
    gos_emitter_bool(emitter, field++, known);
    gos_emitter_row_end(emitter);
}

static void emit_pools(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"pool", "pool", 18},
        {"device", "GPU", 3},
        {"reserved_bytes", "reserved", 11},
        {"used_bytes", "used", 11},
        {"live_bytes", "live", 11},
        {"threshold_bytes", "keeps up to", 11},
        {"is_default", "default", -7},
        {"imported", "imported", 0},
        {"attributes_known", NULL, 0},
    };
    open_table(emitter, "pools", "POOLS (keeps up to: '-' is no limit)", fields, COUNT_OF(fields),
               evidence->pool_count);
    for (size_t i = 0; i < evidence->pool_count; i++)
        emit_pool(&evidence->pools[i], fields, emitter);
    gos_emitter_end(emitter);
}

static void emit_stream(const struct gos_stream_evidence *stream, const struct gos_field *field,
                        struct gos_emitter *emitter)
{
    const char *state = stream->running ? "running" : "finished";
    if (!stream->asked)
        state = "not asked";
    gos_emitter_row(emitter, NULL);
    gos_emitter_handle(emitter, field++, stream->stream);
    gos_emitter_count(emitter, field++, stream->context);
    gos_emitter_count(emitter, field++, stream->device);
    gos_emitter_bytes(emitter, field++, stream->freed_bytes);
    gos_emitter_bool(emitter, field++, stream->per_thread);
    gos_emitter_bool(emitter, field++, stream->of_other_thread);
    gos_emitter_string(emitter, field++, state);
    gos_emitter_row_end(emitter);
}

static void emit_streams(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"stream", "stream", 18},     {"context", NULL, 0},    {"device", "GPU", 3},
        {"freed_bytes", "freed", 11}, {"per_thread", NULL, 0}, {"of_other_thread", NULL, 0},
        {"state", "work", 0},
    };
    open_table(emitter, "streams", "STREAMS with frees that may not be done", fields,
               COUNT_OF(fields), evidence->stream_count);
    for (size_t i = 0; i < evidence->stream_count; i++)
        emit_stream(&evidence->streams[i], fields, emitter);
    gos_emitter_end(emitter);
}

/* --- what stands in for device memory --- */

static void emit_fallback(const struct gos_fallback_evidence *fallback,
                          const struct gos_field *field, struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, NULL);
    gos_emitter_string(emitter, field++, gos_fallback_code(fallback->way));
    gos_emitter_count(emitter, field++, fallback->device);
    gos_emitter_bytes(emitter, field++, fallback->total.live_bytes);
    gos_emitter_count(emitter, field++, fallback->total.live_count);
    gos_emitter_row_end(emitter);
}

static void emit_fallbacks(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"way", "way", -13},
        {"device", "GPU", 3},
        {"live_bytes", "live", 11},
        {"live_count", "count", 6},
    };
    open_table(emitter, "fallback", "FALLBACK: slower memory that stands in for the device's",
               fields, COUNT_OF(fields), evidence->fallback_count);
    for (size_t i = 0; i < evidence->fallback_count; i++)
        emit_fallback(&evidence->fallbacks[i], fields, emitter);
    gos_emitter_end(emitter);
}

/* --- processes --- */

/* For people; for programs it follows from uid and mps_server. */
static const char *remark(const struct gos_evidence *evidence,
                          const struct gos_process_evidence *process)
{
    if (process->mps_server)
        return "MPS: its clients' memory";
    if (evidence->uid_known && process->relation == GOS_PROCESS_OTHER &&
        process->uid != evidence->uid)
        return "another user's";
    return "";
}

static void emit_neighbour(const struct gos_evidence *evidence,
                           const struct gos_process_evidence *process,
                           const struct gos_field *field, struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, NULL);
    gos_emitter_signed(emitter, field++, process->device);
    gos_emitter_count(emitter, field++, process->pid);
    gos_emitter_bytes_if(emitter, field++, process->used_bytes != UINT64_MAX, process->used_bytes);
    gos_emitter_string(emitter, field++, gos_relation_code(process->relation));
    gos_emitter_count(emitter, field++, process->uid);
    gos_emitter_bool(emitter, field++, process->zombie);
    gos_emitter_bool(emitter, field++, process->mps_server);
    gos_emitter_string(emitter, field++, process->name);
    gos_emitter_string(emitter, field++, remark(evidence, process));
    gos_emitter_row_end(emitter);
}

static void emit_processes(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"device", "GPU", 3},         {"pid", "pid", 8},     {"used_bytes", "uses", 11},
        {"relation", "relation", -8}, {"uid", "uid", 6},     {"zombie", "zombie", -6},
        {"mps_server", NULL, 0},      {"name", "name", -15}, {NULL, "", 0},
    };
    open_table(emitter, "processes", "PROCESSES on these GPUs", fields, COUNT_OF(fields),
               evidence->process_count);
    for (size_t i = 0; i < evidence->process_count; i++)
        emit_neighbour(evidence, &evidence->processes[i], fields, emitter);
    gos_emitter_end(emitter);
}

/* --- history --- */

static void emit_event(const struct gos_event *event, const struct gos_field *field,
                       struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, NULL);
    gos_emitter_time(emitter, field++, event->wall_ns);
    gos_emitter_signed(emitter, field++, event->tid);
    gos_emitter_signed(emitter, field++, event->device);
    gos_emitter_bytes(emitter, field++, event->bytes);
    gos_emitter_string(emitter, field++, event->what);
    gos_emitter_signed(emitter, field++, event->result);
    gos_emitter_string(emitter, field++, event->result ? gos_cuda_error_text(event->result) : "");
    gos_emitter_row_end(emitter);
}

static void emit_events(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    size_t first = document->is_brief && evidence->event_count > BRIEF_EVENTS
                       ? evidence->event_count - BRIEF_EVENTS
                       : 0;
    static const struct gos_field fields[] = {
        {"wall_ns", "when", -23}, {"tid", "thread", 8},  {"device", "GPU", 3},
        {"bytes", "bytes", 11},   {"what", "what", -24}, {"result", "code", 4},
        {NULL, "meaning", 0},
    };
    open_table(emitter, "events", "HISTORY, oldest first", fields, COUNT_OF(fields),
               evidence->event_count);
    for (size_t i = first; i < evidence->event_count; i++)
        emit_event(&evidence->events[i], fields, emitter);
    gos_emitter_end(emitter);
    gos_emitter_count(emitter, GOS_FIELD("events_lost", NULL), evidence->events_lost + first);
}

/* --- host --- */

static void emit_limit(struct gos_emitter *emitter, const struct gos_field *field, uint64_t bytes)
{
    gos_emitter_bytes_if(emitter, field, bytes != UINT64_MAX, bytes);
}

static void emit_host_live(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    gos_emitter_array(emitter, "live");
    for (unsigned i = 0; i < GOS_KIND_COUNT; i++) {
        const struct gos_total *total = &evidence->host_live[i];
        if (total->live_count == 0)
            continue;
        gos_emitter_row(emitter, NULL);
        gos_emitter_string(emitter, &(struct gos_field){"kind", NULL, 0},
                           gos_kind_code((enum gos_kind)i));
        gos_emitter_string(emitter, &(struct gos_field){NULL, "", -28},
                           gos_kind_words((enum gos_kind)i));
        gos_emitter_bytes(emitter, &(struct gos_field){"live_bytes", "", -11}, total->live_bytes);
        gos_emitter_count(emitter, &(struct gos_field){"live_count", "", 0}, total->live_count);
        gos_emitter_row_end(emitter);
    }
    gos_emitter_end(emitter);
}

static uint64_t mapped_bytes(const struct gos_evidence *evidence)
{
    uint64_t bytes = evidence->host_live[GOS_KIND_MAPPING].live_bytes;
    for (unsigned i = 0; i < GOS_DEVICE_MAX; i++)
        bytes += evidence->devices[i].live[GOS_KIND_MAPPING].live_bytes;
    return bytes;
}

static void emit_host(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    const struct gos_host_evidence *host = &evidence->host;
    gos_emitter_heading(emitter, "HOST ('-': unlimited or not known)");
    gos_emitter_object(emitter, "host");
    gos_emitter_string(emitter, GOS_FIELD("hostname", "name"), host->hostname);
    gos_emitter_bytes(emitter, GOS_FIELD("memory_total_bytes", "memory"), host->memory_total_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("memory_available_bytes", "memory available"),
                      host->memory_available_bytes);
    emit_limit(emitter, GOS_FIELD("address_limit_bytes", "limit of address space"),
               host->address_limit_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("address_used_bytes", "address space used"),
                      host->address_used_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("reserved_address_bytes", "address space reserved"),
                      evidence->host_live[GOS_KIND_ADDRESS].live_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("mapped_address_bytes", "of that, mapped"),
                      mapped_bytes(evidence));
    emit_limit(emitter, GOS_FIELD("locked_limit_bytes", "limit of locked memory"),
               host->locked_limit_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("locked_used_bytes", "locked"), host->locked_used_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("pinned_used_bytes", "pinned, by the kernel"),
                      host->pinned_used_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("pinned_bytes", "pinned, by CUDA calls"),
                      evidence->host_live[GOS_KIND_HOST].live_bytes +
                          evidence->host_live[GOS_KIND_REGISTERED].live_bytes);
    gos_emitter_signed(emitter, GOS_FIELD("overcommit_mode", "vm.overcommit_memory"),
                       host->overcommit_mode);
    gos_emitter_bytes(emitter, GOS_FIELD("commit_limit_bytes", "limit of promised memory"),
                      host->commit_limit_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("committed_bytes", "promised"), host->committed_bytes);
    emit_limit(emitter, GOS_FIELD("cgroup_limit_bytes", "limit of the cgroup"),
               host->cgroup_limit_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("cgroup_used_bytes", "used in the cgroup"),
                      host->cgroup_used_bytes);
    gos_emitter_count(emitter, GOS_FIELD("map_count", "mappings"), host->map_count);
    gos_emitter_count(emitter, GOS_FIELD("map_count_limit", "limit of mappings"),
                      host->map_count_limit);
    emit_host_live(evidence, emitter);
    gos_emitter_end(emitter);
}

/* --- versions and environment --- */

static void emit_versions(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"what", "what", -24}, {"version", "version", -20}, {"path", "loaded from", 0}};
    open_table(emitter, "versions", "VERSIONS", fields, COUNT_OF(fields), evidence->version_count);
    for (size_t i = 0; i < evidence->version_count; i++) {
        gos_emitter_row(emitter, NULL);
        gos_emitter_string(emitter, &fields[0], evidence->versions[i].what);
        gos_emitter_string(emitter, &fields[1], evidence->versions[i].version);
        gos_emitter_string(emitter, &fields[2], evidence->versions[i].path);
        gos_emitter_row_end(emitter);
    }
    gos_emitter_end(emitter);
}

static void emit_mismatches(const struct gos_diagnosis *diagnosis, struct gos_emitter *emitter)
{
    if (diagnosis->mismatch_count > 0)
        gos_emitter_heading(emitter, "THESE VERSIONS DO NOT FIT TOGETHER");
    gos_emitter_array(emitter, "mismatches");
    for (size_t i = 0; i < diagnosis->mismatch_count; i++)
        gos_emitter_item(emitter, diagnosis->mismatches[i].line);
    gos_emitter_end(emitter);
}

static void emit_variable(const struct gos_variable *variable, struct gos_emitter *emitter)
{
    gos_emitter_line(emitter, "  %s=%s", variable->name,
                     variable->value ? variable->value : "(not set)");
    if (variable->at_start)
        gos_emitter_line(emitter, "    at first CUDA use: %s", variable->at_start);
    if (gos_emitter_is_text(emitter))
        return;
    gos_emitter_row(emitter, NULL);
    gos_emitter_string(emitter, GOS_FIELD("name", NULL), variable->name);
    gos_emitter_string(emitter, GOS_FIELD("value", NULL), variable->value);
    gos_emitter_string(emitter, GOS_FIELD("at_start", NULL), variable->at_start);
    gos_emitter_row_end(emitter);
}

static void emit_environment(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    if (evidence->variable_count > 0)
        gos_emitter_heading(emitter, "ENVIRONMENT (of the variables that matter here)");
    gos_emitter_array(emitter, "environment");
    for (size_t i = 0; i < evidence->variable_count; i++)
        emit_variable(&evidence->variables[i], emitter);
    gos_emitter_end(emitter);
}

/* --- what is missing --- */

static void emit_incomplete(const struct gos_evidence *evidence, struct gos_emitter *emitter)
{
    if (evidence->incomplete_count > 0)
        gos_emitter_heading(emitter, "NOT VISIBLE");
    gos_emitter_array(emitter, "incomplete");
    for (size_t i = 0; i < evidence->incomplete_count; i++)
        gos_emitter_item(emitter, evidence->incomplete[i]);
    gos_emitter_end(emitter);
}

static void emit_losses(const struct gos_health *health, struct gos_emitter *emitter)
{
    gos_emitter_array(emitter, "losses");
    for (unsigned i = 0; i < GOS_LOSS_COUNT; i++) {
        const char *name = gos_loss_name((enum gos_loss)i);
        if (health->losses[i] > 0)
            gos_emitter_line(emitter, "  lost: %s, %llu times", name,
                             (unsigned long long)health->losses[i]);
        if (gos_emitter_is_text(emitter))
            continue;
        gos_emitter_row(emitter, NULL);
        gos_emitter_string(emitter, GOS_FIELD("what", NULL), name);
        gos_emitter_count(emitter, GOS_FIELD("count", NULL), health->losses[i]);
        gos_emitter_row_end(emitter);
    }
    gos_emitter_end(emitter);
}

static void emit_tracking(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    gos_emitter_heading(emitter, "TRACKING");
    gos_emitter_object(emitter, "tracking");
    gos_emitter_count(emitter, GOS_FIELD("allocated_count", "allocations seen"),
                      evidence->allocated_count);
    gos_emitter_count(emitter, GOS_FIELD("freed_count", "frees seen"), evidence->freed_count);
    gos_emitter_bytes(emitter, GOS_FIELD("metadata_bytes", "host memory used for it"),
                      evidence->metadata_bytes);
    gos_emitter_bytes(
        emitter,
        GOS_FIELD("stack_sample_bytes", evidence->stack_sample_bytes ? "a stack per" : NULL),
        evidence->stack_sample_bytes);
    gos_emitter_string(emitter, GOS_FIELD("unwinder", "native stacks by"), evidence->unwinder);
    gos_emitter_string(emitter, GOS_FIELD("python", "Python"), evidence->python);
    emit_losses(&document->health, emitter);
    if (document->health.fuse_reason)
        gos_emitter_line(emitter, "  switched off: %s", document->health.fuse_reason);
    gos_emitter_string(emitter, GOS_FIELD("fuse", NULL), document->health.fuse_reason);
    gos_emitter_end(emitter);
}

void gos_document_place(const struct gos_document *document, struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    emit_pools(evidence, emitter);
    emit_streams(evidence, emitter);
    emit_fallbacks(evidence, emitter);
    emit_processes(evidence, emitter);
    emit_events(document, emitter);
    emit_host(evidence, emitter);
    emit_versions(evidence, emitter);
    emit_mismatches(document->report->diagnosis, emitter);
    emit_environment(evidence, emitter);
    emit_incomplete(evidence, emitter);
    emit_tracking(document, emitter);
}
