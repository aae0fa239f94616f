/* The devices of a report: ledger, memory by kind, block map. */
#include "document.h"

#include "../base/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

bool gos_document_total(const struct gos_document *document, int ordinal, uint64_t *bytes)
{
    const struct gos_device_evidence *device =
        &document->report->diagnosis->evidence->devices[ordinal];
    const struct gos_ledger *ledger = &document->report->diagnosis->ledgers[ordinal];
    if (ledger->known)
        *bytes = ledger->total_bytes;
    else if (device->driver_known)
        *bytes = device->driver_total_bytes;
    else
        *bytes = device->nvml_total_bytes;
    return ledger->known || device->driver_known || device->nvml_status == 0;
}

bool gos_document_free(const struct gos_document *document, int ordinal, uint64_t *bytes)
{
    const struct gos_device_evidence *device =
        &document->report->diagnosis->evidence->devices[ordinal];
    *bytes = device->driver_known ? device->driver_free_bytes : device->nvml_free_bytes;
    return device->driver_known || device->nvml_status == 0;
}

/* --- what the driver and NVML said --- */

static void emit_driver(const struct gos_device_evidence *device, struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, "driver");
    gos_emitter_bool(emitter, GOS_FIELD("known", NULL), device->driver_known);
    gos_emitter_bytes(emitter, GOS_FIELD("total_bytes", NULL), device->driver_total_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("free_bytes", NULL), device->driver_free_bytes);
    gos_emitter_row_end(emitter);
}

static void emit_nvml(const struct gos_device_evidence *device, struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, "nvml");
    gos_emitter_signed(emitter, GOS_FIELD("status", NULL), device->nvml_status);
    gos_emitter_bytes(emitter, GOS_FIELD("total_bytes", NULL), device->nvml_total_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("reserved_bytes", NULL), device->nvml_reserved_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("free_bytes", NULL), device->nvml_free_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("used_bytes", NULL), device->nvml_used_bytes);
    gos_emitter_signed(emitter, GOS_FIELD("processes_status", NULL), device->processes_status);
    gos_emitter_row_end(emitter);
}

static void emit_identity(const struct gos_document *document,
                          const struct gos_device_evidence *device, struct gos_emitter *emitter)
{
    uint64_t total = 0;
    uint64_t left = 0;
    bool total_known = gos_document_total(document, device->ordinal, &total);
    bool free_known = gos_document_free(document, device->ordinal, &left);
    gos_emitter_signed(emitter, GOS_FIELD("ordinal", NULL), device->ordinal);
    gos_emitter_string(emitter, GOS_FIELD("uuid", "uuid"), device->uuid[0] ? device->uuid : NULL);
    gos_emitter_string(emitter, GOS_FIELD("name", NULL), device->name);
    gos_emitter_bool(emitter, GOS_FIELD("integrated", device->integrated ? "integrated" : NULL),
                     device->integrated);
    gos_emitter_bool(emitter, GOS_FIELD("mig", device->mig ? "MIG instance" : NULL), device->mig);
    gos_emitter_bool(emitter, GOS_FIELD("mps", device->mps ? "shared through MPS" : NULL),
                     device->mps);
    gos_emitter_count(
        emitter,
        GOS_FIELD("context_count", device->context_count > 1 ? "contexts of this process" : NULL),
        device->context_count);
    gos_emitter_bytes_if(emitter, GOS_FIELD("total_bytes", "total"), total_known, total);
    gos_emitter_bytes_if(emitter, GOS_FIELD("free_bytes", "free"), free_known, left);
    gos_emitter_bytes_if(emitter,
                         GOS_FIELD("limit_bytes", device->limit_bytes ? "limited to" : NULL),
                         device->limit_bytes != 0, device->limit_bytes);
    gos_emitter_bytes_if(emitter, GOS_FIELD("own_bytes", "this process by NVML"),
                         device->own_bytes_known, device->own_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("peak_bytes", "highest live sum so far"),
                      device->peak_bytes);
    gos_emitter_bytes_if(emitter, GOS_FIELD("bar1_total_bytes", "BAR1 window"), device->bar1_known,
                         device->bar1_total_bytes);
    gos_emitter_bytes_if(emitter, GOS_FIELD("bar1_used_bytes", "BAR1 in use"), device->bar1_known,
                         device->bar1_used_bytes);
}

/* Numbers that the ledger is made of; text has the ledger itself. */
static void emit_sources(const struct gos_device_evidence *device, struct gos_emitter *emitter)
{
    if (gos_emitter_is_text(emitter))
        return;
    emit_driver(device, emitter);
    emit_nvml(device, emitter);
    gos_emitter_bytes(emitter, GOS_FIELD("graph_reserved_bytes", NULL),
                      device->graph_reserved_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("graph_used_bytes", NULL), device->graph_used_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("unmapped_physical_bytes", NULL),
                      device->unmapped_physical_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("large_rounding_bytes", NULL),
                      device->large_rounding_bytes);
    gos_emitter_count(emitter, GOS_FIELD("small_count", NULL), device->small_count);
    gos_emitter_count(emitter, GOS_FIELD("small_lost", NULL), device->small_lost);
}

/* --- ledger --- */

static const struct gos_field ledger_fields[] = {
    {"item", NULL, 0}, {NULL, "item", -36},     {"bytes", "bytes", 16},
    {NULL, "GiB", 8},  {"source", "source", 0},
};

static void emit_gib(struct gos_emitter *emitter, const struct gos_field *field, int64_t bytes)
{
    char buffer[24];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (bytes < 0)
        gos_text_char(&text, '-');
    gos_text_gib(&text, bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes);
    gos_emitter_string(emitter, field, buffer);
}

static void emit_ledger_line(const struct gos_ledger *ledger, enum gos_ledger_line line,
                             struct gos_emitter *emitter)
{
    const struct gos_field *field = ledger_fields;
    int64_t bytes = ledger->lines[line].bytes;
    if (gos_emitter_is_text(emitter) && bytes == 0)
        return;
    gos_emitter_row(emitter, NULL);
    gos_emitter_string(emitter, field++, gos_ledger_code(line));
    gos_emitter_string(emitter, field++, gos_ledger_words(line));
    gos_emitter_signed(emitter, field++, bytes);
    emit_gib(emitter, field++, bytes);
    gos_emitter_string(emitter, field++, gos_source_code(ledger->lines[line].source));
    gos_emitter_row_end(emitter);
}

static void emit_ledger_total(const struct gos_ledger *ledger, struct gos_emitter *emitter)
{
    if (!gos_emitter_is_text(emitter))
        return;
    gos_emitter_row(emitter, NULL);
    gos_emitter_string(emitter, &ledger_fields[1], "total, the sum of these lines");
    gos_emitter_count(emitter, &ledger_fields[2], ledger->total_bytes);
    emit_gib(emitter, &ledger_fields[3], (int64_t)ledger->total_bytes);
    gos_emitter_row_end(emitter);
}

/* Not a line of the sum: the bytes are on their owner's. */
static void emit_imported(const struct gos_total *imported, struct gos_emitter *emitter)
{
    char buffer[24];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_text_bytes(&text, imported->live_bytes);
    if (imported->live_bytes)
        gos_emitter_line(emitter,
                         "  %s are mapped here from outside (IPC): they count where they were "
                         "allocated.",
                         buffer);
}

static void emit_ledger(const struct gos_ledger *ledger, int ordinal, struct gos_emitter *emitter)
{
    gos_emitter_array(emitter, "ledger");
    if (ledger->known) {
        gos_emitter_heading(emitter, "LEDGER of GPU %d: every byte on one line (no line: 0 bytes)",
                            ordinal);
        gos_emitter_titles(emitter, ledger_fields, COUNT_OF(ledger_fields));
        for (unsigned i = 0; i < GOS_LEDGER_COUNT; i++)
            emit_ledger_line(ledger, (enum gos_ledger_line)i, emitter);
        emit_ledger_total(ledger, emitter);
    }
    gos_emitter_end(emitter);
    if (ledger->clamped)
        gos_emitter_line(emitter, "  More is tracked than there is room for (managed memory that "
                                  "is not resident?): derived lines were cut.");
    gos_emitter_bool(emitter, GOS_FIELD("ledger_clamped", NULL), ledger->clamped);
}

/* --- live by kind --- */

static void emit_kind(const struct gos_total *total, enum gos_kind kind,
                      const struct gos_field *fields, struct gos_emitter *emitter)
{
    gos_emitter_row(emitter, NULL);
    gos_emitter_string(emitter, fields++, gos_kind_code(kind));
    gos_emitter_string(emitter, fields++, gos_kind_words(kind));
    gos_emitter_bytes(emitter, fields++, total->live_bytes);
    gos_emitter_count(emitter, fields++, total->live_count);
    gos_emitter_row_end(emitter);
}

static bool any_live(const struct gos_total *live)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < GOS_KIND_COUNT; i++)
        count += live[i].live_count;
    return count > 0;
}

static void emit_live(const struct gos_total *live, int ordinal, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"kind", NULL, 0},
        {NULL, "kind", -36},
        {"live_bytes", "live", 11},
        {"live_count", "allocations", 12},
    };
    gos_emitter_array(emitter, "live");
    if (any_live(live)) {
        gos_emitter_heading(emitter, "LIVE ALLOCATIONS on GPU %d", ordinal);
        gos_emitter_titles(emitter, fields, COUNT_OF(fields));
    }
    for (unsigned i = 0; i < GOS_KIND_COUNT; i++) {
        if (live[i].live_count > 0)
            emit_kind(&live[i], (enum gos_kind)i, fields, emitter);
    }
    gos_emitter_end(emitter);
}

/* --- block map --- */

static void emit_pins(const struct gos_document *document,
                      const struct gos_fragmentation *fragmentation, struct gos_emitter *emitter)
{
    gos_emitter_array(emitter, "pins");
    for (size_t i = 0; i < fragmentation->pin_count; i++) {
        char buffer[32];
        struct gos_text text = gos_text_on(buffer, sizeof buffer);
        gos_text_bytes(&text, fragmentation->pins[i].stuck_bytes);
        gos_emitter_line(emitter, "  %s unused in %llu blocks that these allocations pin", buffer,
                         (unsigned long long)fragmentation->pins[i].blocks);
        gos_emitter_object(emitter, NULL);
        gos_emitter_count(emitter, GOS_FIELD("site", NULL), fragmentation->pins[i].site);
        gos_emitter_count(emitter, GOS_FIELD("blocks", NULL), fragmentation->pins[i].blocks);
        gos_emitter_bytes(emitter, GOS_FIELD("stuck_bytes", NULL),
                          fragmentation->pins[i].stuck_bytes);
        gos_document_stack(document, emitter, fragmentation->pins[i].site);
        gos_emitter_end(emitter);
    }
    gos_emitter_end(emitter);
}

static void emit_permille(struct gos_emitter *emitter, const char *key, const char *title,
                          uint32_t permille)
{
    char buffer[24];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_text_format(&text, "%u.%u %%", permille / 10, permille % 10);
    gos_emitter_count(emitter, GOS_FIELD(key, NULL), permille);
    gos_emitter_string(emitter, GOS_FIELD(NULL, title), buffer);
}

static void emit_framework_pieces(const struct gos_fragmentation *fragmentation,
                                  struct gos_emitter *emitter)
{
    bool any = fragmentation->framework_idle_bytes > 0;
    if (gos_emitter_is_text(emitter) && !any)
        return;
    gos_emitter_bytes(emitter, GOS_FIELD("framework_idle_bytes", "frameworks: reserved, unused"),
                      fragmentation->framework_idle_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("framework_stuck_bytes", "of no use for the request"),
                      fragmentation->framework_stuck_bytes);
    emit_permille(emitter, "framework_permille", "share of it", fragmentation->framework_permille);
}

static void emit_blocks(const struct gos_fragmentation *fragmentation, struct gos_emitter *emitter)
{
    gos_emitter_count(emitter, GOS_FIELD("block_count", "blocks with small allocations"),
                      fragmentation->block_count);
    gos_emitter_count(emitter, GOS_FIELD("block_pinned_count", "at most half used"),
                      fragmentation->block_pinned_count);
    gos_emitter_bytes(emitter, GOS_FIELD("block_live_bytes", "in use in them"),
                      fragmentation->block_live_bytes);
    gos_emitter_bytes(emitter, GOS_FIELD("block_stuck_bytes", "unused, but pinned"),
                      fragmentation->block_stuck_bytes);
    if (fragmentation->block_lost_count > 0)
        gos_emitter_line(emitter, "  %llu small allocations are not on this map: less is unused",
                         (unsigned long long)fragmentation->block_lost_count);
    gos_emitter_count(emitter, GOS_FIELD("block_lost_count", NULL),
                      fragmentation->block_lost_count);
    emit_permille(emitter, "block_permille", "that is, of unused memory",
                  fragmentation->block_permille);
    emit_permille(emitter, "pool_permille", "pools, of their unused memory",
                  fragmentation->pool_permille);
}

static void emit_fragmentation(const struct gos_document *document, int ordinal,
                               struct gos_emitter *emitter)
{
    const struct gos_fragmentation *fragmentation =
        &document->report->diagnosis->fragmentation[ordinal];
    bool blocks = fragmentation->block_count > 0 || fragmentation->pool_permille > 0;
    if (gos_emitter_is_text(emitter) && !blocks && fragmentation->framework_idle_bytes == 0)
        return;
    if (blocks)
        gos_emitter_heading(emitter, "BLOCK MAP of GPU %d (the driver hands out 2 MiB blocks)",
                            ordinal);
    else
        gos_emitter_heading(emitter, "FRAGMENTATION of GPU %d", ordinal);
    gos_emitter_object(emitter, "fragmentation");
    if (blocks || !gos_emitter_is_text(emitter))
        emit_blocks(fragmentation, emitter);
    emit_framework_pieces(fragmentation, emitter);
    emit_pins(document, fragmentation, emitter);
    gos_emitter_end(emitter);
}

void gos_document_device(const struct gos_document *document, struct gos_emitter *emitter,
                         int ordinal)
{
    const struct gos_diagnosis *diagnosis = document->report->diagnosis;
    const struct gos_device_evidence *device = &diagnosis->evidence->devices[ordinal];
    gos_emitter_heading(emitter, "GPU %d  %s", ordinal, device->name);
    gos_emitter_object(emitter, NULL);
    emit_identity(document, device, emitter);
    emit_sources(device, emitter);
    emit_ledger(&diagnosis->ledgers[ordinal], ordinal, emitter);
    emit_imported(&device->live[GOS_KIND_IMPORTED], emitter);
    emit_live(device->live, ordinal, emitter);
    emit_fragmentation(document, ordinal, emitter);
    gos_emitter_end(emitter);
}
