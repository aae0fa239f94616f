/* Limits that somebody set on this process' share of the device. */
#include <string.h>

#include "../base/text.h"
#include "rule.h"
#include "saturate.h"
#include "setting.h"
#include "wording.h"

#define LIMIT_NAME "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"

/* The size after "ordinal=" in "0=2G,1=512M"; 0 when there is none. */
static uint64_t size_of_item(const char *item, size_t length)
{
    char buffer[32];
    uint64_t bytes = 0;
    if (length >= sizeof(buffer))
        return 0;
    memcpy(buffer, item, length);
    buffer[length] = '\0';
    return gos_text_parse_bytes(buffer, &bytes) == 0 ? bytes : 0;
}

static bool is_item_of(const char *item, size_t length, int device)
{
    int ordinal = 0;
    for (size_t i = 0; i < length; i++) {
        if (item[i] < '0' || item[i] > '9' || ordinal > GOS_DEVICE_MAX)
            return false;
        ordinal = ordinal * 10 + (item[i] - '0');
    }
    return length > 0 && ordinal == device;
}

static uint64_t limit_of(const char *list, int device)
{
    while (list && *list) {
        size_t item = strcspn(list, ",");
        size_t name = strcspn(list, "=,");
        if (list[name] == '=' && is_item_of(list, name, device))
            return size_of_item(list + name + 1, item - name - 1);
        list += item + (list[item] == ',');
    }
    return 0;
}

/*
 * The variable binds only clients of MPS, and whether we are one cannot be
 * seen; so a device with room and a limit that fits are likely, not proven.
 */
bool gos_rule_mps_pinned_limit(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const char *value = gos_setting_get(s->evidence, LIMIT_NAME);
    if (!value || !s->on_device || !s->asked_bytes || s->missing_bytes > 0)
        return false;
    uint64_t limit = limit_of(value, s->diagnosis->device);
    if (limit == 0 || gos_plus(s->ledger->own_bytes, s->cost_bytes) <= limit)
        return false;
    verdict->code = GOS_VERDICT_POLICY_LIMIT;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence, "%s asked for on top of %s; " LIMIT_NAME " allows this process %s.",
        gos_wording_bytes(s->evidence, s->asked_bytes),
        gos_wording_bytes(s->evidence, s->ledger->own_bytes),
        gos_wording_bytes(s->evidence, limit));
    gos_verdict_say(verdict, gos_wording(s->evidence, "The device itself has %s free.",
                                         gos_wording_bytes(s->evidence, s->free_bytes)));
    gos_verdict_advise(verdict, "Raise the limit: " LIMIT_NAME " or the MPS daemon's "
                                "set_default_device_pinned_mem_limit.");
    return true;
}
