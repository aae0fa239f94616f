/* Devices of a report: what was measured, ledger, live memory, block map. */
#include <errno.h>

#include "json_value.h"
#include "load.h"

static void load_driver(struct gos_device_evidence *device, const json_t *from)
{
    device->driver_known = gos_value_bool(from, "known");
    device->driver_total_bytes = gos_value_number(from, "total_bytes", 0);
    device->driver_free_bytes = gos_value_number(from, "free_bytes", 0);
}

static void load_nvml(struct gos_device_evidence *device, const json_t *from)
{
    device->nvml_status = (int)gos_value_signed(from, "status", -ENOENT);
    device->nvml_total_bytes = gos_value_number(from, "total_bytes", 0);
    device->nvml_reserved_bytes = gos_value_number(from, "reserved_bytes", 0);
    device->nvml_free_bytes = gos_value_number(from, "free_bytes", 0);
    device->nvml_used_bytes = gos_value_number(from, "used_bytes", 0);
    device->processes_status = (int)gos_value_signed(from, "processes_status", -ENOENT);
}

static void load_numbers(struct gos_device_evidence *device, const json_t *from)
{
    device->integrated = gos_value_bool(from, "integrated");
    device->own_bytes_known = gos_value_has(from, "own_bytes");
    device->own_bytes = gos_value_number(from, "own_bytes", 0);
    device->limit_bytes = gos_value_number(from, "limit_bytes", 0);
    device->peak_bytes = gos_value_number(from, "peak_bytes", 0);
    device->graph_reserved_bytes = gos_value_number(from, "graph_reserved_bytes", 0);
    device->graph_used_bytes = gos_value_number(from, "graph_used_bytes", 0);
    device->unmapped_physical_bytes = gos_value_number(from, "unmapped_physical_bytes", 0);
    device->large_rounding_bytes = gos_value_number(from, "large_rounding_bytes", 0);
    device->small_count = (size_t)gos_value_number(from, "small_count", 0);
    device->small_lost = gos_value_number(from, "small_lost", 0);
    device->mig = gos_value_bool(from, "mig");
    device->mps = gos_value_bool(from, "mps");
    device->context_count = (uint32_t)gos_value_number(from, "context_count", 0);
    device->bar1_known = gos_value_has(from, "bar1_total_bytes");
    device->bar1_total_bytes = gos_value_number(from, "bar1_total_bytes", 0);
    device->bar1_used_bytes = gos_value_number(from, "bar1_used_bytes", 0);
    gos_value_copy(from, "name", device->name, sizeof device->name);
    gos_value_copy(from, "uuid", device->uuid, sizeof device->uuid);
}

static void load_ledger(struct gos_ledger *ledger, const json_t *device)
{
    const json_t *lines = json_object_get(device, "ledger");
    ledger->known = json_array_size(lines) > 0;
    ledger->total_bytes = gos_value_number(device, "total_bytes", 0);
    ledger->clamped = gos_value_bool(device, "ledger_clamped");
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *from = json_array_get(lines, i);
        unsigned line =
            gos_value_word(from, "item", gos_ledger_code, GOS_LEDGER_COUNT, GOS_LEDGER_COUNT);
        if (line == GOS_LEDGER_COUNT)
            continue;
        ledger->lines[line].bytes = gos_value_signed(from, "bytes", 0);
        ledger->lines[line].source =
            gos_value_word(from, "source", gos_source_code, 3, GOS_SOURCE_UNKNOWN);
        if (gos_ledger_is_own(line))
            ledger->own_bytes += (uint64_t)ledger->lines[line].bytes;
    }
}

static void load_pins(struct gos_fragmentation *fragmentation, const json_t *array)
{
    const size_t max = sizeof fragmentation->pins / sizeof fragmentation->pins[0];
    for (size_t i = 0; i < json_array_size(array) && i < max; i++) {
        const json_t *from = json_array_get(array, i);
        fragmentation->pins[i].site = (uint32_t)gos_value_number(from, "site", 0);
        fragmentation->pins[i].blocks = gos_value_number(from, "blocks", 0);
        fragmentation->pins[i].stuck_bytes = gos_value_number(from, "stuck_bytes", 0);
        fragmentation->pin_count++;
    }
}

static void load_fragmentation(struct gos_fragmentation *fragmentation, const json_t *from)
{
    fragmentation->block_count = gos_value_number(from, "block_count", 0);
    fragmentation->block_pinned_count = gos_value_number(from, "block_pinned_count", 0);
    fragmentation->block_live_bytes = gos_value_number(from, "block_live_bytes", 0);
    fragmentation->block_stuck_bytes = gos_value_number(from, "block_stuck_bytes", 0);
    fragmentation->block_lost_count = gos_value_number(from, "block_lost_count", 0);
    fragmentation->block_permille = (uint32_t)gos_value_number(from, "block_permille", 0);
    fragmentation->pool_permille = (uint32_t)gos_value_number(from, "pool_permille", 0);
    fragmentation->framework_idle_bytes = gos_value_number(from, "framework_idle_bytes", 0);
    fragmentation->framework_stuck_bytes = gos_value_number(from, "framework_stuck_bytes", 0);
    fragmentation->framework_permille = (uint32_t)gos_value_number(from, "framework_permille", 0);
    load_pins(fragmentation, json_object_get(from, "pins"));
}

static void load_device(struct gos_loaded *loaded, const json_t *from)
{
    uint64_t ordinal = gos_value_number(from, "ordinal", GOS_DEVICE_MAX);
    if (ordinal >= GOS_DEVICE_MAX)
        return;
    struct gos_device_evidence *device = &loaded->evidence.devices[ordinal];
    device->ordinal = (int)ordinal;
    device->present = true;
    load_driver(device, json_object_get(from, "driver"));
    load_nvml(device, json_object_get(from, "nvml"));
    load_numbers(device, from);
    load_ledger(&loaded->diagnosis.ledgers[ordinal], from);
    gos_load_live(device->live, from);
    load_fragmentation(&loaded->diagnosis.fragmentation[ordinal],
                       json_object_get(from, "fragmentation"));
}

int gos_load_devices(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *devices = json_object_get(root, "devices");
    for (size_t i = 0; i < json_array_size(devices); i++)
        load_device(loaded, json_array_get(devices, i));
    return 0;
}
