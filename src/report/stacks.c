#include "stacks.h"

#include <string.h>

#include "../base/os.h"

/* --- what a reader can do without --- */

static bool starts_with(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

/* "python", "python3", "python3.12": the interpreter linked into its executable. */
static bool is_interpreter(const char *name)
{
    if (starts_with(name, "libpython"))
        return true;
    return starts_with(name, "python") && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

bool gos_frame_is_noise(const struct gos_shown_frame *frame)
{
    if (!frame->module || !frame->module->name)
        return false;
    return starts_with(frame->module->name, "libgpuoomshim") || is_interpreter(frame->module->name);
}

bool gos_python_frame_is_noise(const struct gos_python_frame *frame)
{
    return frame->file && starts_with(frame->file, "<frozen ");
}

/* --- symbols, each looked up once --- */

struct symbol {
    const struct gos_module *module; /* NULL: free slot */
    uint64_t offset;
    const char *name;
    uint64_t name_offset;
};

#define SYMBOL_SLOTS 8192u
#define SYMBOL_PROBES 32u

struct resolver {
    struct gos_scratch *scratch;
    struct symbol *symbols; /* SYMBOL_SLOTS, or NULL without memory */
    uint64_t deadline_ns;
};

static struct symbol *symbol_slot(const struct resolver *resolver, const struct gos_module *module,
                                  uint64_t offset)
{
    uint64_t hash = (offset ^ (uint64_t)module->index << 40) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < SYMBOL_PROBES; i++) {
        struct symbol *slot = &resolver->symbols[((hash >> 40) + i) % SYMBOL_SLOTS];
        if (!slot->module || (slot->module == module && slot->offset == offset))
            return slot;
    }
    return NULL;
}

/*
 * A return address may be the first byte after a function that never returns
 * from its last call, hence the byte before it is the one that is looked up.
 */
static void look_up(struct symbol *symbol, const struct gos_module *module, uint64_t offset)
{
    uint64_t distance = 0;
    symbol->module = module;
    symbol->offset = offset;
    symbol->name = gos_module_nearest(module, module->base + (uintptr_t)offset - 1, &distance);
    symbol->name_offset = distance + 1;
}

static void name_frame(struct resolver *resolver, struct gos_shown_frame *frame)
{
    if (!frame->module || !resolver->symbols || frame->offset == 0)
        return;
    struct symbol *symbol = symbol_slot(resolver, frame->module, frame->offset);
    if (!symbol)
        return;
    if (!symbol->module) {
        if (gos_os.monotonic_ns() >= resolver->deadline_ns)
            return;
        look_up(symbol, frame->module, frame->offset);
    }
    frame->symbol = symbol->name;
    frame->symbol_offset = symbol->name ? symbol->name_offset : 0;
}

/* --- stacks --- */

static struct gos_shown_frame *show_native(struct resolver *resolver, const struct gos_site *site)
{
    struct gos_shown_frame *frames =
        gos_scratch_alloc(resolver->scratch, site->native_count * sizeof *frames);
    for (uint32_t i = 0; frames && i < site->native_count; i++) {
        const struct gos_native_frame *native = &site->native[i];
        frames[i].module = native->module == UINT32_MAX ? NULL : gos_module_at(native->module);
        frames[i].offset = native->offset;
        name_frame(resolver, &frames[i]);
    }
    return frames;
}

static void show_site(struct resolver *resolver, struct gos_stacks *stacks, uint32_t id)
{
    const struct gos_site *site = gos_site_get(id);
    if (!site)
        return;
    struct gos_shown_stack *stack = &stacks->stacks[stacks->count++];
    stack->site = id;
    stack->tag = site->tag;
    stack->python = site->python;
    stack->python_count = site->python_count;
    stack->native = site->native_count ? show_native(resolver, site) : NULL;
    stack->native_count = stack->native ? site->native_count : 0;
}

/* Heap sort: no recursion, no worst case, no memory. */
static void sift(struct gos_shown_stack *stacks, size_t root, size_t count)
{
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && stacks[child].site < stacks[child + 1].site)
            child++;
        if (stacks[root].site >= stacks[child].site)
            return;
        struct gos_shown_stack swap = stacks[root];
        stacks[root] = stacks[child];
        stacks[child] = swap;
        root = child;
    }
}

static void sort(struct gos_shown_stack *stacks, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(stacks, i, count);
    for (size_t end = count; end-- > 1;) {
        struct gos_shown_stack last = stacks[end];
        stacks[end] = stacks[0];
        stacks[0] = last;
        sift(stacks, 0, end);
    }
}

/* A site of several kinds or devices comes up more than once. */
static void drop_repeated(struct gos_stacks *stacks)
{
    size_t kept = 0;
    for (size_t i = 0; i < stacks->count; i++) {
        if (kept == 0 || stacks->stacks[kept - 1].site != stacks->stacks[i].site)
            stacks->stacks[kept++] = stacks->stacks[i];
    }
    stacks->count = kept;
}

static size_t pin_total(const struct gos_diagnosis *diagnosis)
{
    size_t total = 0;
    for (int i = 0; i < GOS_DEVICE_MAX; i++)
        total += diagnosis->fragmentation[i].pin_count;
    return total;
}

static void show_pins(struct resolver *resolver, struct gos_stacks *stacks,
                      const struct gos_diagnosis *diagnosis)
{
    for (int i = 0; i < GOS_DEVICE_MAX; i++) {
        const struct gos_fragmentation *fragmentation = &diagnosis->fragmentation[i];
        for (size_t k = 0; k < fragmentation->pin_count; k++)
            show_site(resolver, stacks, fragmentation->pins[k].site);
    }
}

/* By index first, so that each is there once, then without the gaps. */
static void collect_modules(struct gos_stacks *stacks, struct gos_scratch *scratch)
{
    stacks->module_count = 0;
    stacks->modules = gos_scratch_alloc(scratch, GOS_STACKS_MODULES_MAX * sizeof *stacks->modules);
    if (!stacks->modules)
        return;
    for (size_t i = 0; i < stacks->count; i++) {
        for (uint32_t k = 0; k < stacks->stacks[i].native_count; k++) {
            const struct gos_module *module = stacks->stacks[i].native[k].module;
            if (module && module->index < GOS_STACKS_MODULES_MAX)
                stacks->modules[module->index] = module;
        }
    }
    for (size_t i = 0; i < GOS_STACKS_MODULES_MAX; i++) {
        if (stacks->modules[i])
            stacks->modules[stacks->module_count++] = stacks->modules[i];
    }
}

static const struct gos_module *requester_of(const struct gos_request *request)
{
    if (!request->api || request->requester_module == UINT32_MAX)
        return NULL;
    return gos_module_at(request->requester_module);
}

static void resolve_all(struct gos_stacks *stacks, struct resolver *resolver,
                        const struct gos_diagnosis *diagnosis, size_t use_count)
{
    const struct gos_evidence *evidence = diagnosis->evidence;
    show_site(resolver, stacks, evidence->request.site);
    show_pins(resolver, stacks, diagnosis);
    for (size_t i = 0; i < use_count; i++)
        show_site(resolver, stacks, evidence->uses[i].site);
    sort(stacks->stacks, stacks->count);
    drop_repeated(stacks);
}

void gos_stacks_resolve(struct gos_stacks *stacks, struct gos_scratch *scratch,
                        const struct gos_diagnosis *diagnosis, size_t site_max, uint64_t budget_ns)
{
    const struct gos_evidence *evidence = diagnosis->evidence;
    size_t use_count = evidence->use_count < site_max ? evidence->use_count : site_max;
    struct resolver resolver = {.scratch = scratch,
                                .deadline_ns = gos_os.monotonic_ns() + budget_ns};
    size_t room = 1 + pin_total(diagnosis) + use_count;

    memset(stacks, 0, sizeof *stacks);
    stacks->requester = requester_of(&evidence->request);
    stacks->stacks = gos_scratch_alloc(scratch, room * sizeof *stacks->stacks);
    if (!stacks->stacks)
        return;
    if (budget_ns > 0)
        resolver.symbols = gos_scratch_alloc(scratch, SYMBOL_SLOTS * sizeof *resolver.symbols);
    resolve_all(stacks, &resolver, diagnosis, use_count);
    collect_modules(stacks, scratch);
}

const struct gos_shown_stack *gos_stacks_find(const struct gos_stacks *stacks, uint32_t site)
{
    size_t low = 0;
    size_t high = stacks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stacks->stacks[middle].site < site)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = site != 0 && low < stacks->count && stacks->stacks[low].site == site;
    return found ? &stacks->stacks[low] : NULL;
}
