#include "sim_range.h"

#include <stdlib.h>
#include <sys/mman.h>

/* More than the address space of a process; larger sizes must not overflow when rounded. */
#define SPACE_MAX (UINT64_C(1) << 47)

static struct sim_range *root;
static uint64_t last_id;

static uint32_t next_priority(void)
{
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/* Splits by base: everything below `base` goes to *low, the rest to *high. */
static void split(struct sim_range *tree, uint64_t base, struct sim_range **low,
                  struct sim_range **high)
{
    while (tree != NULL) {
        if (tree->base < base) {
            *low = tree;
            low = &tree->right;
            tree = tree->right;
        } else {
            *high = tree;
            high = &tree->left;
            tree = tree->left;
        }
    }
    *low = NULL;
    *high = NULL;
}

static struct sim_range *merge(struct sim_range *low, struct sim_range *high)
{
    struct sim_range *tree = NULL;
    struct sim_range **link = &tree;
    while (low != NULL && high != NULL) {
        if (low->priority > high->priority) {
            *link = low;
            link = &low->right;
            low = low->right;
        } else {
            *link = high;
            link = &high->left;
            high = high->left;
        }
    }
    *link = low != NULL ? low : high;
    return tree;
}

static void insert(struct sim_range *range)
{
    struct sim_range **link = &root;
    while (*link != NULL && (*link)->priority >= range->priority)
        link = range->base < (*link)->base ? &(*link)->left : &(*link)->right;
    split(*link, range->base, &range->left, &range->right);
    *link = range;
}

struct sim_range *sim_range_add(enum sim_kind kind, uint64_t base, uint64_t bytes, int device)
{
    struct sim_range *range = calloc(1, sizeof(*range));
    if (range == NULL)
        return NULL;
    range->kind = kind;
    range->base = base;
    range->bytes = bytes;
    range->mapped_bytes = bytes;
    range->device = device;
    range->id = ++last_id;
    range->priority = next_priority();
    insert(range);
    return range;
}

void sim_range_remove(struct sim_range *range)
{
    struct sim_range **link = &root;
    while (*link != range)
        link = range->base < (*link)->base ? &(*link)->left : &(*link)->right;
    *link = merge(range->left, range->right);
    free(range);
}

struct sim_range *sim_range_find(uint64_t address)
{
    struct sim_range *best = NULL;
    for (struct sim_range *range = root; range != NULL;) {
        if (range->base <= address)
            best = range;
        range = range->base <= address ? range->right : range->left;
    }
    return best != NULL && address - best->base < best->bytes ? best : NULL;
}

struct sim_range *sim_range_at(uint64_t base)
{
    struct sim_range *range = sim_range_find(base);
    return range != NULL && range->base == base ? range : NULL;
}

static struct sim_range *search_context(struct sim_range *tree, CUcontext context)
{
    if (tree == NULL || tree->context == context)
        return tree;
    struct sim_range *found = search_context(tree->left, context);
    return found != NULL ? found : search_context(tree->right, context);
}

struct sim_range *sim_range_of_context(CUcontext context)
{
    return search_context(root, context);
}

static void visit_each(const struct sim_range *tree,
                       void (*visit)(const struct sim_range *, void *), void *argument)
{
    if (tree == NULL)
        return;
    visit_each(tree->left, visit, argument);
    visit(tree, argument);
    visit_each(tree->right, visit, argument);
}

void sim_range_each(void (*visit)(const struct sim_range *range, void *argument), void *argument)
{
    visit_each(root, visit, argument);
}

/* Maps more than asked for and cuts the ends off, to begin at a device block. */
uint64_t sim_space_map(uint64_t bytes, bool accessible)
{
    int protection = accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (bytes == 0 || bytes > SPACE_MAX)
        return 0;
    size_t whole = (size_t)(bytes + SIM_BLOCK_BYTES);
    void *memory = mmap(NULL, whole, protection, flags, -1, 0);
    if (memory == MAP_FAILED)
        return 0;
    uint64_t start = (uint64_t)(uintptr_t)memory;
    uint64_t base = sim_round_up(start, SIM_BLOCK_BYTES);
    sim_space_unmap(start, base - start);
    sim_space_unmap(base + bytes, start + whole - (base + bytes));
    return base;
}

void sim_space_unmap(uint64_t base, uint64_t bytes)
{
    if (bytes != 0)
        munmap((void *)(uintptr_t)base, (size_t)bytes);
}

bool sim_space_open(uint64_t base, uint64_t bytes)
{
    return mprotect((void *)(uintptr_t)base, (size_t)bytes, PROT_READ | PROT_WRITE) == 0;
}

void sim_space_close(uint64_t base, uint64_t bytes)
{
    sim_space_drop(base, bytes);
    mprotect((void *)(uintptr_t)base, (size_t)bytes, PROT_NONE);
}

void sim_space_drop(uint64_t base, uint64_t bytes)
{
    if (bytes != 0)
        madvise((void *)(uintptr_t)base, (size_t)bytes, MADV_DONTNEED);
}
