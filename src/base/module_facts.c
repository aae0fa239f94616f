#include "module_facts.h"

#include <elf.h>
#include <string.h>

static void stretch(struct gos_module *module, const ElfW(Phdr) * segment)
{
    uintptr_t start = module->base + segment->p_vaddr;
    uintptr_t end = start + segment->p_memsz;

    if (module->end == 0 || start < module->start)
        module->start = start;
    if (end > module->end)
        module->end = end;
}

static size_t align4(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* A note is a header, the owner's name and the contents, each padded to four bytes. */
static void read_notes(struct gos_module *module, const ElfW(Phdr) * segment)
{
    const char *at = (const char *)(module->base + segment->p_vaddr);
    const char *end = at + segment->p_memsz;

    while ((size_t)(end - at) > sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
        const char *name = at + sizeof(*note);
        const char *contents = name + align4(note->n_namesz);
        size_t bytes = sizeof(*note) + align4(note->n_namesz) + align4(note->n_descsz);

        if (bytes > (size_t)(end - at))
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
            note->n_descsz <= sizeof(module->build_id)) {
            memcpy(module->build_id, contents, note->n_descsz);
            module->build_id_bytes = (uint8_t)note->n_descsz;
            return;
        }
        at += bytes;
    }
}

static bool is_mapped(const struct gos_module *module, const ElfW(Phdr) * segment)
{
    uintptr_t start = module->base + segment->p_vaddr;

    return start >= module->start && start + segment->p_memsz <= module->end;
}

void gos_module_describe(const struct dl_phdr_info *info, struct gos_module *module)
{
    *module = (struct gos_module){.base = info->dlpi_addr};
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD)
            stretch(module, segment);
        else if (segment->p_type == PT_DYNAMIC)
            module->dynamic = (const void *)(module->base + segment->p_vaddr);
    }
    /* Notes come before the segments that hold them, hence a second round. */
    for (ElfW(Half) i = 0; i < info->dlpi_phnum && module->build_id_bytes == 0; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_NOTE && is_mapped(module, segment))
            read_notes(module, segment);
    }
}

bool gos_module_is_same(const struct gos_module *a, const struct gos_module *b)
{
    return a->base == b->base && a->start == b->start && a->end == b->end &&
           a->dynamic == b->dynamic && a->build_id_bytes == b->build_id_bytes &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
}
