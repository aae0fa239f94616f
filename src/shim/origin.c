#include "origin.h"

#include <stddef.h>
#include <string.h>

#include "../base/module.h"
#include "../diagnose/code_place.h"
#include "../diagnose/diagnosis.h"
#include "../track/site.h"
#include "../track/table.h"

/*
 * A program may have one function through which everything is allocated, so its
 * callers count, too.  Of a program with a static cudart the first frames are
 * cudart's.
 */
#define LINES 3
#define FRAMES 6

static const struct gos_module *requester_of(const struct gos_request *request)
{
    return gos_module_at(request->requester_module);
}

bool gos_origin_is_torch_allocator(const struct gos_request *request)
{
    const struct gos_module *module = requester_of(request);

    if (request->is_word)
        return strcmp(request->api, "torch") == 0;
    return module && strncmp(module->name, "libc10", 6) == 0;
}

static bool is_interpreter(const char *library)
{
    return strcmp(library, "python") == 0;
}

static uint64_t add_line(uint64_t origin, const struct gos_python_frame *frame)
{
    return gos_table_mix(origin ^ (uintptr_t)frame->file ^ (uint64_t)frame->line << 48);
}

/* The host's own lines, or those of installed code where there are no others. */
static uint64_t add_lines(uint64_t origin, const struct gos_site *site, bool installed)
{
    unsigned added = 0;

    for (uint32_t i = 0; i < site->python_count && added < LINES; i++)
        if (gos_code_is_installed(&site->python[i]) == installed) {
            origin = add_line(origin, &site->python[i]);
            added++;
        }
    return added ? origin : 0;
}

static uint32_t first_of(const struct gos_site *site, uint32_t module)
{
    uint32_t i = 0;

    while (i < site->native_count && site->native[i].module != module)
        i++;
    return i;
}

/* The first frame that is not the framework's, however many libraries it consists of. */
static uint32_t first_above(const struct gos_site *site, uint32_t first, const char *library)
{
    uint32_t i = first;

    for (; i < site->native_count; i++) {
        const struct gos_module *module = gos_module_at(site->native[i].module);
        if (!module || strcmp(gos_library_name(module->path), library) != 0)
            return i;
    }
    return first;
}

static uint64_t add_frames(uint64_t origin, const struct gos_request *request,
                           const struct gos_site *site)
{
    const struct gos_module *requester = requester_of(request);
    const char *library = requester ? gos_library_name(requester->path) : "";
    uint32_t first = first_of(site, request->requester_module);
    bool is_framework = requester && strcmp(library, requester->name) != 0;

    if (is_framework && !is_interpreter(library))
        first = first_above(site, first, library);
    uint32_t i = first;
    for (; i < site->native_count && i < first + FRAMES; i++)
        origin =
            gos_table_mix(origin ^ site->native[i].offset ^ (uint64_t)site->native[i].module << 48);
    return i > first ? origin : 0;
}

static uint64_t of_requester(const struct gos_request *request)
{
    if (gos_origin_is_torch_allocator(request))
        return gos_table_mix(1);
    return gos_table_mix((uintptr_t)request->api ^ (uint64_t)request->requester_module << 48);
}

uint64_t gos_origin_of(const struct gos_request *request)
{
    const struct gos_site *site = gos_site_get(request->site);
    uint64_t origin = of_requester(request) ^ gos_table_mix((uint64_t)request->device + 2);
    uint64_t found = 0;

    if (!site || (request->requester_module == UINT32_MAX && site->python_count == 0))
        return 0; /* nothing but the C library's frames is known: they are everybody's */
    if (site->python_count > 0)
        found = add_lines(origin, site, false);
    if (!found && site->python_count > 0)
        found = add_lines(origin, site, true);
    return found ? found : add_frames(origin, request, site);
}
