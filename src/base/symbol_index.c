#include "symbol_index.h"

#include <stdatomic.h>
#include <string.h>

#include "loss.h"
#include "memory.h"
#include "module.h"

struct entry {
    uint32_t value;  /* the symbol's, from the module's base */
    uint32_t symbol; /* number in the symbol table */
};

struct symbol_index {
    uint32_t count;
    struct entry entries[]; /* ascending */
};

static _Atomic(struct symbol_index *) indexes[GOS_MODULE_MAX];

/* Functions may lie in one another (aliases, entry points within): so many are looked at. */
#define LOOK_BACK 16

#define RADIX_BITS 11
#define RADIX (1u << RADIX_BITS)

/* One pass of a radix sort: stable, by RADIX_BITS bits from `shift` on. */
static void sort_pass(const struct entry *from, struct entry *to, uint32_t count, unsigned shift)
{
    uint32_t starts[RADIX + 1] = {0};

    for (uint32_t i = 0; i < count; i++)
        starts[(from[i].value >> shift & (RADIX - 1)) + 1]++;
    for (uint32_t i = 0; i < RADIX; i++)
        starts[i + 1] += starts[i];
    for (uint32_t i = 0; i < count; i++)
        to[starts[from[i].value >> shift & (RADIX - 1)]++] = from[i];
}

/* Three passes cover 32 bits; the result ends in `entries`. */
static void sort(struct entry *entries, struct entry *spare, uint32_t count)
{
    sort_pass(entries, spare, count, 0);
    sort_pass(spare, entries, count, RADIX_BITS);
    sort_pass(entries, spare, count, 2 * RADIX_BITS);
    memcpy(entries, spare, count * sizeof(*entries));
}

static bool is_wanted(const ElfW(Sym) * symbol)
{
    return gos_elf_is_function(symbol) && symbol->st_value <= UINT32_MAX;
}

static uint32_t count_wanted(const struct gos_elf_image *image, uint32_t symbols)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < symbols; i++)
        count += is_wanted(&image->symbols[i]);
    return count;
}

static size_t index_bytes(uint32_t count)
{
    return sizeof(struct symbol_index) + count * sizeof(struct entry);
}

static void fill(struct symbol_index *index, const struct gos_elf_image *image, uint32_t symbols)
{
    for (uint32_t i = 0; i < symbols; i++) {
        if (is_wanted(&image->symbols[i]))
            index->entries[index->count++] =
                (struct entry){(uint32_t)image->symbols[i].st_value, i};
    }
}

static struct symbol_index *build(const struct gos_elf_image *image)
{
    uint32_t symbols = gos_elf_symbol_count(image), count = count_wanted(image, symbols);
    struct symbol_index *index = gos_memory_alloc(index_bytes(count));
    struct entry *spare = index ? gos_memory_alloc(index_bytes(count)) : NULL;

    if (!spare) {
        gos_memory_free(index, index_bytes(count));
        gos_loss_count(GOS_LOSS_MEMORY);
        return NULL;
    }
    fill(index, image, symbols);
    sort(index->entries, spare, count);
    gos_memory_free(spare, index_bytes(count));
    return index;
}

/* Threads may build at once; the first to publish wins. */
static struct symbol_index *index_of(uint32_t module, const struct gos_elf_image *image)
{
    struct symbol_index *index = atomic_load_explicit(&indexes[module], memory_order_acquire);
    struct symbol_index *other = NULL;

    if (index)
        return index;
    index = build(image);
    if (index && !atomic_compare_exchange_strong(&indexes[module], &other, index)) {
        gos_memory_free(index, index_bytes(index->count));
        return other;
    }
    return index;
}

/* Number of entries at or below the value. */
static uint32_t count_up_to(const struct symbol_index *index, uint64_t value)
{
    uint32_t low = 0, high = index->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (index->entries[middle].value <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Assembly functions may have no size: theirs reaches to the next function. */
static bool covers(const ElfW(Sym) * symbol, uint64_t value, bool is_nearest)
{
    return value - symbol->st_value < symbol->st_size || (symbol->st_size == 0 && is_nearest);
}

const ElfW(Sym) *
    gos_symbol_covering(uint32_t module, const struct gos_elf_image *image, uintptr_t address)
{
    const struct symbol_index *index;
    uint64_t value = address - image->base;
    uint32_t below;

    index = module < GOS_MODULE_MAX ? index_of(module, image) : NULL;
    below = index ? count_up_to(index, value) : 0;
    for (uint32_t i = 1; i <= LOOK_BACK && i <= below; i++) {
        const ElfW(Sym) *symbol = &image->symbols[index->entries[below - i].symbol];

        if (covers(symbol, value, i == 1))
            return symbol;
    }
    return NULL;
}
