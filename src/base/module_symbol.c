#include "module.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "elf_image.h"
#include "loss.h"
#include "memory.h"
#include "module_facts.h"
#include "phdr_walk.h"
#include "symbol_index.h"

/*
 * Symbol tables are read inside the loader's walk only, after making sure that
 * the object is still there: outside, a dlclose on another thread could unmap
 * them under our hands.
 */
struct use {
    const struct gos_module *module;
    void (*use)(const struct gos_module *, const struct gos_elf_image *, void *);
    void *arg;
};

static int use_if_same(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
    const struct use *use = arg;
    struct gos_module facts;
    struct gos_elf_image image;

    (void)info_bytes;
    if (info->dlpi_addr != use->module->base)
        return 0;
    gos_module_describe(info, &facts);
    if (!gos_module_is_same(&facts, use->module))
        return 0;
    if (gos_elf_image_make(facts.base, facts.dynamic, &image))
        use->use(use->module, &image, use->arg);
    return 1;
}

static void while_loaded(const struct gos_module *module,
                         void (*use)(const struct gos_module *, const struct gos_elf_image *,
                                     void *),
                         void *arg)
{
    struct use one = {.module = module, .use = use, .arg = arg};

    if (module && module->dynamic)
        gos_phdr_walk(use_if_same, &one);
}

/* --- by name ------------------------------------------------------------------------------ */

struct by_name {
    const char *name;
    uintptr_t address;
};

static void look_up(const struct gos_module *module, const struct gos_elf_image *image, void *arg)
{
    struct by_name *query = arg;

    (void)module;
    query->address = gos_elf_symbol(image, query->name);
}

uintptr_t gos_module_symbol(const struct gos_module *module, const char *symbol)
{
    struct by_name query = {.name = symbol};

    while_loaded(module, look_up, &query);
    return query.address;
}

/* --- by address --------------------------------------------------------------------------- */

struct by_address {
    uintptr_t address;
    const char *name;
    uint64_t offset;
};

static void look_back(const struct gos_module *module, const struct gos_elf_image *image, void *arg)
{
    struct by_address *query = arg;
    const ElfW(Sym) *symbol = gos_symbol_covering(module->index, image, query->address);
    const char *name;

    if (!symbol)
        return;
    name = gos_elf_string(image, symbol->st_name);
    query->name = gos_arena_intern(name, strlen(name));
    query->offset = query->address - image->base - symbol->st_value;
}

const char *gos_module_nearest(const struct gos_module *module, uintptr_t address, uint64_t *offset)
{
    struct by_address query = {.address = address};

    while_loaded(module, look_back, &query);
    if (query.name && offset)
        *offset = query.offset;
    return query.name;
}

/* --- dependencies ------------------------------------------------------------------------- */

static const char *entry_string(const struct gos_elf_image *image, const ElfW(Dyn) * entry)
{
    return gos_elf_string(image, entry->d_un.d_val);
}

static void look_for_soname(const struct gos_module *module, const struct gos_elf_image *image,
                            void *arg)
{
    const char **soname = arg;

    (void)module;
    for (const ElfW(Dyn) *entry = image->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SONAME)
            *soname =
                gos_arena_intern(entry_string(image, entry), strlen(entry_string(image, entry)));
}

struct by_need {
    const char *name;
    bool found;
};

static void look_for_need(const struct gos_module *module, const struct gos_elf_image *image,
                          void *arg)
{
    struct by_need *query = arg;

    (void)module;
    for (const ElfW(Dyn) *entry = image->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && strcmp(entry_string(image, entry), query->name) == 0)
            query->found = true;
}

/* A file's name may be a link's, or a version's that no linker wrote down. */
bool gos_module_needs(const struct gos_module *module, const struct gos_module *other)
{
    struct by_need query = {.name = other->name};

    while_loaded(other, look_for_soname, &query.name);
    if (query.name)
        while_loaded(module, look_for_need, &query);
    return query.found;
}
