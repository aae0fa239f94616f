/* Sites of a report, their stacks, and the modules that the frames name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json_value.h"
#include "load.h"

/* --- modules --- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void load_build_id(struct gos_module *module, const char *hex)
{
    for (; hex && hex[0] && hex[1] && module->build_id_bytes < sizeof module->build_id; hex += 2) {
        int value = hex_digit(hex[0]) * 16 + hex_digit(hex[1]);
        module->build_id[module->build_id_bytes++] = (uint8_t)value;
    }
}

/* Those of the file, for the report that is printed. */
static int list_modules(struct gos_loaded *loaded)
{
    struct gos_stacks *stacks = &loaded->document.stacks;
    stacks->modules =
        gos_scratch_alloc(&loaded->scratch, loaded->module_count * sizeof *stacks->modules);
    if (!stacks->modules)
        return -ENOMEM;
    for (size_t i = 0; i < loaded->module_count; i++)
        stacks->modules[i] = &loaded->modules[i];
    stacks->module_count = loaded->module_count;
    return 0;
}

static int load_modules(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *array = json_object_get(root, "modules");
    loaded->modules =
        gos_load_array(loaded, root, "modules", sizeof *loaded->modules, &loaded->module_count);
    if (loaded->module_count > 0 && !loaded->modules)
        return -ENOMEM;
    for (size_t i = 0; i < loaded->module_count; i++) {
        const json_t *from = json_array_get(array, i);
        struct gos_module *module = &loaded->modules[i];
        module->index = (uint32_t)gos_value_number(from, "module", UINT32_MAX);
        module->name = gos_value_text(from, "name");
        module->path = gos_value_text(from, "path");
        load_build_id(module, gos_value_string(from, "build_id"));
    }
    return loaded->module_count > 0 ? list_modules(loaded) : 0;
}

static const struct gos_module *find_module(const struct gos_loaded *loaded, uint64_t index)
{
    for (size_t i = 0; i < loaded->module_count; i++) {
        if (loaded->modules[i].index == index)
            return &loaded->modules[i];
    }
    return NULL;
}

/* The library that asked may be on no stack of the file; its name and path are there anyway. */
static int load_requester(struct gos_loaded *loaded, const json_t *request)
{
    if (!gos_value_has(request, "requester"))
        return 0;
    struct gos_module *module = gos_scratch_alloc(&loaded->scratch, sizeof *module);
    if (!module)
        return -ENOMEM;
    module->name = gos_value_text(request, "requester");
    module->path = gos_value_text(request, "requester_path");
    loaded->document.stacks.requester = module;
    return 0;
}

/* --- stacks --- */

static int load_python(struct gos_loaded *loaded, struct gos_shown_stack *stack, const json_t *from)
{
    const json_t *array = json_object_get(from, "python");
    size_t count = 0;
    struct gos_python_frame *frames =
        gos_load_array(loaded, from, "python", sizeof *frames, &count);
    if (count > 0 && !frames)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const json_t *frame = json_array_get(array, i);
        frames[i].file = gos_value_string(frame, "file");
        frames[i].function = gos_value_string(frame, "function");
        frames[i].line = (int)gos_value_signed(frame, "line", 0);
    }
    stack->python = frames;
    stack->python_count = (uint32_t)count;
    return 0;
}

static void load_frame(const struct gos_loaded *loaded, struct gos_shown_frame *frame,
                       const json_t *from)
{
    frame->module = find_module(loaded, gos_value_number(from, "module", UINT64_MAX));
    frame->offset = gos_value_number(from, "offset", 0);
    frame->symbol = gos_value_string(from, "symbol");
    frame->symbol_offset = gos_value_number(from, "symbol_offset", 0);
}

static int load_native(struct gos_loaded *loaded, struct gos_shown_stack *stack, const json_t *from)
{
    const json_t *array = json_object_get(from, "native");
    size_t count = 0;
    stack->native = gos_load_array(loaded, from, "native", sizeof *stack->native, &count);
    if (count > 0 && !stack->native)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        load_frame(loaded, &stack->native[i], json_array_get(array, i));
    stack->native_count = (uint32_t)count;
    return 0;
}

/* Adds the stack of a site, a pin or the request, if it has one. */
static int load_stack(struct gos_loaded *loaded, const json_t *owner)
{
    struct gos_stacks *stacks = &loaded->document.stacks;
    const json_t *from = json_object_get(owner, "stack");
    if (!json_is_object(from))
        return 0;
    struct gos_shown_stack *stack = &stacks->stacks[stacks->count++];
    stack->site = (uint32_t)gos_value_number(owner, "site", 0);
    stack->tag = gos_value_string(from, "tag");
    int result = load_python(loaded, stack, from);
    return result == 0 ? load_native(loaded, stack, from) : result;
}

static int load_stacks_of(struct gos_loaded *loaded, const json_t *array)
{
    int result = 0;
    for (size_t i = 0; i < json_array_size(array) && result == 0; i++)
        result = load_stack(loaded, json_array_get(array, i));
    return result;
}

static const json_t *pins_of(const json_t *device)
{
    return json_object_get(json_object_get(device, "fragmentation"), "pins");
}

static size_t count_stacks(const json_t *root)
{
    const json_t *devices = json_object_get(root, "devices");
    size_t count = 1 + json_array_size(json_object_get(root, "sites"));
    for (size_t i = 0; i < json_array_size(devices); i++)
        count += json_array_size(pins_of(json_array_get(devices, i)));
    return count;
}

static int compare_sites(const void *a, const void *b)
{
    uint32_t left = ((const struct gos_shown_stack *)a)->site;
    uint32_t right = ((const struct gos_shown_stack *)b)->site;
    return (left > right) - (left < right);
}

static int load_stacks(struct gos_loaded *loaded, const json_t *root)
{
    struct gos_stacks *stacks = &loaded->document.stacks;
    const json_t *devices = json_object_get(root, "devices");
    stacks->stacks =
        gos_scratch_alloc(&loaded->scratch, count_stacks(root) * sizeof *stacks->stacks);
    int result = stacks->stacks ? load_stack(loaded, json_object_get(root, "request")) : -ENOMEM;
    for (size_t i = 0; i < json_array_size(devices) && result == 0; i++)
        result = load_stacks_of(loaded, pins_of(json_array_get(devices, i)));
    if (result == 0)
        result = load_stacks_of(loaded, json_object_get(root, "sites"));
    if (result == 0)
        qsort(stacks->stacks, stacks->count, sizeof *stacks->stacks, compare_sites);
    return result;
}

/* --- sites --- */

static void load_use(struct gos_site_use *use, const json_t *from)
{
    use->site = (uint32_t)gos_value_number(from, "site", 0);
    use->kind = gos_value_word(from, "kind", gos_kind_code, GOS_KIND_COUNT, GOS_KIND_NONE);
    use->device = (uint32_t)gos_value_number(from, "device", GOS_DEVICE_HOST);
    use->live_bytes = gos_value_number(from, "live_bytes", 0);
    use->live_count = gos_value_number(from, "live_count", 0);
    use->largest_bytes = gos_value_number(from, "largest_bytes", 0);
    use->oldest_ms = (uint32_t)gos_value_number(from, "oldest_ms", 0);
    use->newest_ms = (uint32_t)gos_value_number(from, "newest_ms", 0);
    use->is_estimated = gos_value_bool(from, "estimated");
    use->estimated_bytes = gos_value_number(from, "estimated_live_bytes", 0);
}

static int load_uses(struct gos_loaded *loaded, const json_t *root)
{
    const json_t *array = json_object_get(root, "sites");
    struct gos_evidence *evidence = &loaded->evidence;
    evidence->uses =
        gos_load_array(loaded, root, "sites", sizeof *evidence->uses, &evidence->use_count);
    if (evidence->use_count > 0 && !evidence->uses)
        return -ENOMEM;
    for (size_t i = 0; i < evidence->use_count; i++)
        load_use(&evidence->uses[i], json_array_get(array, i));
    return 0;
}

int gos_load_sites(struct gos_loaded *loaded, const json_t *root)
{
    int result = load_modules(loaded, root);
    if (result == 0)
        result = load_requester(loaded, json_object_get(root, "request"));
    if (result == 0)
        result = load_stacks(loaded, root);
    return result == 0 ? load_uses(loaded, root) : result;
}
