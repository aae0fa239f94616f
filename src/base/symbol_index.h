/*
 * Functions of a module by address.  A library like torch's has hundreds of
 * thousands of symbols, and a report asks for hundreds of addresses, so each
 * module's functions are sorted once, at the first question.
 *
 * Hook context: yes; no lock, metadata memory.
 */
#ifndef GOS_BASE_SYMBOL_INDEX_H
#define GOS_BASE_SYMBOL_INDEX_H

#include <stdint.h>

#include "elf_image.h"

/*
 * The exported function whose extent holds the address, or NULL.  The image is
 * that of the module with this number in the permanent table, and mapped.
 */
const ElfW(Sym) *
    gos_symbol_covering(uint32_t module, const struct gos_elf_image *image, uintptr_t address);

#endif
