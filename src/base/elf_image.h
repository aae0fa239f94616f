/*
 * The dynamic symbols of one ELF object in memory, read directly: the loader's
 * own lookups (dlsym, dladdr) take its big lock.
 *
 * The caller makes sure that the object stays mapped meanwhile.  Hook context:
 * yes; no lock, no memory.
 */
#ifndef GOS_BASE_ELF_IMAGE_H
#define GOS_BASE_ELF_IMAGE_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gos_elf_image {
    uintptr_t base;
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t strings_bytes;
    const uint32_t *gnu_hash;    /* NULL if absent; one of the two exists */
    const uint32_t *sysv_hash;   /* NULL if absent */
    const ElfW(Half) * versions; /* NULL: no versions */
};

/* False when the object has no symbols to look up. */
bool gos_elf_image_make(uintptr_t base, const ElfW(Dyn) * dynamic, struct gos_elf_image *image);

/* The object whose ELF header is mapped at that address (the vDSO). */
bool gos_elf_image_at(uintptr_t header, struct gos_elf_image *image);

/*
 * Address of the exported function or object in its default version, else 0.
 * An IFUNC counts as absent: its address would be the resolver's.
 */
uintptr_t gos_elf_symbol(const struct gos_elf_image *image, const char *name);

/* Number of entries in the symbol table, as far as the hash tables tell. */
uint32_t gos_elf_symbol_count(const struct gos_elf_image *image);

/* Is this entry a defined function? */
bool gos_elf_is_function(const ElfW(Sym) * symbol);

/* The string at that offset of the string table; "" for an offset outside. */
const char *gos_elf_string(const struct gos_elf_image *image, uint64_t offset);

#endif
