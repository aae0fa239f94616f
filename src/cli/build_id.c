#include "build_id.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_MAX_BYTES 65536u

/* Notes are 4-byte aligned records: header, name, description. */
static const unsigned char *find_in_notes(const unsigned char *notes, size_t bytes, size_t *length)
{
    while (bytes >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr header;
        memcpy(&header, notes, sizeof header);
        size_t name = ((size_t)header.n_namesz + 3) & ~(size_t)3;
        size_t description = ((size_t)header.n_descsz + 3) & ~(size_t)3;
        size_t whole = sizeof header + name + description;
        if (whole > bytes)
            return NULL;
        if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4) {
            *length = header.n_descsz;
            return notes + sizeof header + name;
        }
        notes += whole;
        bytes -= whole;
    }
    return NULL;
}

static bool read_at(FILE *file, long offset, void *buffer, size_t bytes)
{
    return fseek(file, offset, SEEK_SET) == 0 && fread(buffer, 1, bytes, file) == bytes;
}

static bool segment_matches(FILE *file, const Elf64_Phdr *segment, const struct gos_module *module)
{
    size_t bytes = segment->p_filesz < NOTES_MAX_BYTES ? segment->p_filesz : NOTES_MAX_BYTES;
    unsigned char *notes = malloc(bytes + 1);
    bool matches = false;
    if (notes && read_at(file, (long)segment->p_offset, notes, bytes)) {
        size_t length = 0;
        const unsigned char *found = find_in_notes(notes, bytes, &length);
        matches = found && length >= module->build_id_bytes &&
                  memcmp(found, module->build_id, module->build_id_bytes) == 0;
    }
    free(notes);
    return matches;
}

static bool file_matches(FILE *file, const struct gos_module *module)
{
    Elf64_Ehdr header;
    if (!read_at(file, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        long offset = (long)(header.e_phoff + (Elf64_Off)i * header.e_phentsize);
        if (!read_at(file, offset, &segment, sizeof segment))
            return false;
        if (segment.p_type == PT_NOTE && segment_matches(file, &segment, module))
            return true;
    }
    return false;
}

int gos_build_id_check(const struct gos_module *module)
{
    FILE *file = module->path ? fopen(module->path, "rb") : NULL;
    if (!file)
        return module->path ? -errno : -ENOENT;
    bool matches = module->build_id_bytes == 0 || file_matches(file, module);
    fclose(file);
    return matches ? 0 : -ESTALE;
}
