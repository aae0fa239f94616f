#include "injection.h"

#include <stdatomic.h>
#include <string.h>

#include "../base/module.h"
#include "../base/options.h"
#include "../base/text.h"
#include "../track/site.h"
#include "../track/unwind.h"
#include "call.h"

static _Atomic uint64_t number; /* of the last call that passed the filters */
static _Atomic uint64_t hits;

/* --- kinds ------------------------------------------------------------------------------------ */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static enum gos_inject_kind watched_kind(enum gos_entrypoint entry)
{
    const char *name = gos_entrypoint_name(entry);

    if (begins(name, "cuLaunch") || begins(name, "cuGraphLaunch"))
        return GOS_INJECT_LAUNCH;
    if (begins(name, "cuModule") || begins(name, "cuLibrary") || begins(name, "cuKernelGet") ||
        begins(name, "cuFuncLoad"))
        return GOS_INJECT_LOAD;
    return GOS_INJECT_KIND_COUNT;
}

static enum gos_inject_kind kind_of(const struct gos_call *call)
{
    switch ((enum gos_kind)call->kind) {
    case GOS_KIND_DEVICE:
        return GOS_INJECT_DEVICE;
    case GOS_KIND_POOL:
        return GOS_INJECT_ASYNC;
    case GOS_KIND_PHYSICAL:
        return GOS_INJECT_PHYSICAL;
    case GOS_KIND_ARRAY:
        return GOS_INJECT_ARRAY;
    case GOS_KIND_MANAGED:
        return GOS_INJECT_MANAGED;
    case GOS_KIND_GRAPH:
        return GOS_INJECT_GRAPH;
    case GOS_KIND_HOST:
    case GOS_KIND_REGISTERED:
        return GOS_INJECT_HOST;
    case GOS_KIND_NONE:
        return watched_kind((enum gos_entrypoint)call->entry);
    default:
        return GOS_INJECT_KIND_COUNT;
    }
}

/* --- sites ------------------------------------------------------------------------------------ */

/* "model.py:41", or "model.py" for any line of it. */
static bool is_python_place(const struct gos_python_frame *frame, const char *wanted)
{
    const char *file = frame->file ? gos_text_base_name(frame->file) : "";
    size_t length = strlen(file);
    uint64_t line;
    int error;
    const char *rest;

    if (length == 0 || strncmp(wanted, file, length) != 0)
        return false;
    if (wanted[length] == '\0')
        return true;
    rest = wanted[length] == ':' ? gos_text_parse_digits(wanted + length + 1, &line, &error) : NULL;
    return rest && *rest == '\0' && line == (uint64_t)frame->line;
}

static bool is_on_stack(const struct gos_site *site, const char *wanted)
{
    for (uint32_t i = 0; i < site->python_count; i++) {
        if (is_python_place(&site->python[i], wanted))
            return true;
    }
    for (uint32_t i = 0; i < site->native_count; i++) {
        const struct gos_module *module = gos_module_at(site->native[i].module);
        if (module && begins(module->name, wanted))
            return true;
    }
    return site->tag && strcmp(site->tag, wanted) == 0;
}

static bool is_wanted_site(const char *wanted)
{
    const struct gos_site *site = wanted ? gos_site_get(gos_unwind_site()) : NULL;

    return !wanted || (site && is_on_stack(site, wanted));
}

/* ---------------------------------------------------------------------------------------------- */

/* A launch or a load has no size: filters by size leave it out. */
static bool is_wanted_size(const struct gos_inject_option *inject, uint64_t bytes)
{
    return bytes >= inject->min_bytes && bytes <= inject->max_bytes;
}

bool gos_injection_hits(const struct gos_call *call)
{
    const struct gos_inject_option *inject = &gos_options.inject;
    enum gos_inject_kind kind;

    if (inject->rule == GOS_INJECT_NONE)
        return false;
    kind = kind_of(call);
    if (kind == GOS_INJECT_KIND_COUNT || !(inject->kinds >> kind & 1) ||
        !is_wanted_size(inject, call->bytes) || !is_wanted_site(inject->site))
        return false;
    if (!gos_inject_option_hits(inject, atomic_fetch_add(&number, 1) + 1))
        return false;
    atomic_fetch_add(&hits, 1);
    return true;
}

void gos_injection_count(uint64_t *candidate_count, uint64_t *injected_count)
{
    *injected_count = atomic_load(&hits); /* first: it is never more than the other */
    *candidate_count = atomic_load(&number);
}

void gos_injection_reset_after_fork(void)
{
    atomic_store(&number, 0);
    atomic_store(&hits, 0);
}
