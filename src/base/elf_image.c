#include "elf_image.h"

#define VERSION_HIDDEN 0x8000u /* not the default version of its name */
#define VERSION_LOCAL 0

/* The GNU hash table's header, then bloom words, buckets and chains. */
struct gnu_hash {
    const uint64_t *bloom;
    const uint32_t *buckets;
    const uint32_t *chains; /* of the symbols from first_symbol on */
    uint32_t bloom_words;
    uint32_t bloom_shift;
    uint32_t bucket_count;
    uint32_t first_symbol;
};

/* The loader relocates these addresses in place, but not in the vDSO. */
static const void *at(uintptr_t base, uintptr_t pointer)
{
    return (const void *)(pointer < base ? base + pointer : pointer);
}

bool gos_elf_image_make(uintptr_t base, const ElfW(Dyn) * dynamic, struct gos_elf_image *image)
{
    *image = (struct gos_elf_image){.base = base, .dynamic = dynamic};
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *pointer = at(base, dynamic->d_un.d_ptr);

        if (dynamic->d_tag == DT_SYMTAB)
            image->symbols = pointer;
        else if (dynamic->d_tag == DT_STRTAB)
            image->strings = pointer;
        else if (dynamic->d_tag == DT_STRSZ)
            image->strings_bytes = dynamic->d_un.d_val;
        else if (dynamic->d_tag == DT_GNU_HASH)
            image->gnu_hash = pointer;
        else if (dynamic->d_tag == DT_HASH)
            image->sysv_hash = pointer;
        else if (dynamic->d_tag == DT_VERSYM)
            image->versions = pointer;
    }
    return image->symbols && image->strings && (image->gnu_hash || image->sysv_hash);
}

bool gos_elf_image_at(uintptr_t header, struct gos_elf_image *image)
{
    const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)header;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(header + elf->e_phoff);
    const ElfW(Phdr) *first = NULL, *dynamic = NULL;
    uintptr_t base;

    for (ElfW(Half) i = 0; i < elf->e_phnum; i++, segment++) {
        if (segment->p_type == PT_LOAD && !first)
            first = segment;
        else if (segment->p_type == PT_DYNAMIC)
            dynamic = segment;
    }
    if (!first || !dynamic)
        return false;
    base = header + first->p_offset - first->p_vaddr;
    return gos_elf_image_make(base, (const ElfW(Dyn) *)(base + dynamic->p_vaddr), image);
}

const char *gos_elf_string(const struct gos_elf_image *image, uint64_t offset)
{
    return offset < image->strings_bytes ? image->strings + offset : "";
}

static bool is_exported_default(const struct gos_elf_image *image, uint32_t index)
{
    ElfW(Half) version = image->versions ? image->versions[index] : 1;

    return !(version & VERSION_HIDDEN) && version != VERSION_LOCAL;
}

static bool is_defined(const ElfW(Sym) * symbol)
{
    unsigned char bind = ELF64_ST_BIND(symbol->st_info);

    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && bind != STB_LOCAL;
}

bool gos_elf_is_function(const ElfW(Sym) * symbol)
{
    return is_defined(symbol) && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
}

static bool is_addressable(const ElfW(Sym) * symbol)
{
    unsigned char type = ELF64_ST_TYPE(symbol->st_info);

    return is_defined(symbol) && (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE);
}

/* Not strcmp: looking symbols up comes before anything that can be replaced works. */
static bool is_same(const char *one, const char *other)
{
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

static bool is_match(const struct gos_elf_image *image, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &image->symbols[index];

    return is_exported_default(image, index) && is_addressable(symbol) &&
           is_same(gos_elf_string(image, symbol->st_name), name);
}

static uint32_t hash_gnu(const char *name)
{
    uint32_t hash = 5381;

    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static struct gnu_hash gnu_hash_of(const uint32_t *table)
{
    struct gnu_hash gnu = {.bucket_count = table[0],
                           .first_symbol = table[1],
                           .bloom_words = table[2],
                           .bloom_shift = table[3],
                           .bloom = (const uint64_t *)(table + 4)};

    gnu.buckets = (const uint32_t *)(gnu.bloom + gnu.bloom_words);
    gnu.chains = gnu.buckets + gnu.bucket_count;
    return gnu;
}

static bool may_contain(const struct gnu_hash *gnu, uint32_t hash)
{
    uint64_t word = gnu->bloom[(hash / 64) % gnu->bloom_words];
    uint64_t bits = 1ull << (hash % 64) | 1ull << ((hash >> gnu->bloom_shift) % 64);

    return (word & bits) == bits;
}

/* A chain holds the hashes of a bucket's symbols; the lowest bit marks the last. */
static uint32_t find_gnu(const struct gos_elf_image *image, const char *name)
{
    struct gnu_hash gnu = gnu_hash_of(image->gnu_hash);
    uint32_t hash = hash_gnu(name), index, link;

    if (gnu.bucket_count == 0 || gnu.bloom_words == 0 || !may_contain(&gnu, hash))
        return 0;
    index = gnu.buckets[hash % gnu.bucket_count];
    if (index < gnu.first_symbol)
        return 0;
    do {
        link = gnu.chains[index - gnu.first_symbol];
        if ((link | 1) == (hash | 1) && is_match(image, index, name))
            return index;
        index++;
    } while (!(link & 1));
    return 0;
}

static uint32_t hash_sysv(const char *name)
{
    uint32_t hash = 0;

    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    return hash;
}

/* Words: number of buckets, number of symbols, buckets, chains; index 0 ends a chain. */
static uint32_t find_sysv(const struct gos_elf_image *image, const char *name)
{
    uint32_t bucket_count = image->sysv_hash[0];
    const uint32_t *buckets = image->sysv_hash + 2, *chains = buckets + bucket_count;
    uint32_t index = bucket_count ? buckets[hash_sysv(name) % bucket_count] : 0;

    while (index != 0 && !is_match(image, index, name))
        index = chains[index];
    return index;
}

uintptr_t gos_elf_symbol(const struct gos_elf_image *image, const char *name)
{
    uint32_t index = image->gnu_hash ? find_gnu(image, name) : find_sysv(image, name);

    if (index == 0)
        return 0;
    /* Absolute symbols are numbers; an object's base has nothing to do with them. */
    if (image->symbols[index].st_shndx == SHN_ABS)
        return image->symbols[index].st_value;
    return image->base + image->symbols[index].st_value;
}

/* The table's length is written nowhere: it ends with the last symbol of the last chain. */
static uint32_t count_gnu(const uint32_t *table)
{
    struct gnu_hash gnu = gnu_hash_of(table);
    uint32_t last = 0;

    for (uint32_t i = 0; i < gnu.bucket_count; i++)
        last = gnu.buckets[i] > last ? gnu.buckets[i] : last;
    if (last < gnu.first_symbol)
        return gnu.first_symbol;
    while (!(gnu.chains[last - gnu.first_symbol] & 1))
        last++;
    return last + 1;
}

uint32_t gos_elf_symbol_count(const struct gos_elf_image *image)
{
    return image->sysv_hash ? image->sysv_hash[1] : count_gnu(image->gnu_hash);
}
