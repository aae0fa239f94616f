#include "symbol_table.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

static bool read_at(FILE *file, unsigned long long offset, void *buffer, size_t bytes)
{
    return fseek(file, (long)offset, SEEK_SET) == 0 && fread(buffer, 1, bytes, file) == bytes;
}

static bool has_section(FILE *file, unsigned type)
{
    Elf64_Ehdr header;
    Elf64_Shdr section;
    if (!read_at(file, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        unsigned long long at = header.e_shoff + (unsigned long long)i * header.e_shentsize;
        if (!read_at(file, at, &section, sizeof section))
            return false;
        if (section.sh_type == type)
            return true;
    }
    return false;
}

bool gos_has_symbol_table(const char *path)
{
    FILE *file = fopen(path, "rb");
    bool has = file && has_section(file, SHT_SYMTAB);
    if (file)
        fclose(file);
    return has;
}
