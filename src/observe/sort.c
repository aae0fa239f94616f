#include "sort.h"

#include <stdint.h>
#include <string.h>

struct heap {
    char *items;
    size_t item_bytes;
    bool (*before)(const void *, const void *);
};

static char *item_at(const struct heap *heap, size_t index)
{
    return heap->items + index * heap->item_bytes;
}

static void swap(const struct heap *heap, size_t a, size_t b)
{
    char held[GOS_SORT_ITEM_MAX];

    memcpy(held, item_at(heap, a), heap->item_bytes);
    memcpy(item_at(heap, a), item_at(heap, b), heap->item_bytes);
    memcpy(item_at(heap, b), held, heap->item_bytes);
}

/* The item that comes last is at the root: it is the next to go to the end. */
static void sift_down(const struct heap *heap, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && heap->before(item_at(heap, child), item_at(heap, child + 1)))
            child++;
        if (!heap->before(item_at(heap, root), item_at(heap, child)))
            return;
        swap(heap, root, child);
    }
}

void gos_sort_heap(void *items, size_t count, size_t item_bytes,
                   bool (*before)(const void *, const void *))
{
    const struct heap heap = {items, item_bytes, before};

    for (size_t root = count / 2; root-- > 0;)
        sift_down(&heap, root, count);
    for (size_t end = count; end-- > 1;) {
        swap(&heap, 0, end);
        sift_down(&heap, 0, end);
    }
}

static bool use_before(const void *left, const void *right)
{
    const struct gos_site_use *a = left, *b = right;

    if (gos_site_use_bytes(a) != gos_site_use_bytes(b))
        return gos_site_use_bytes(a) > gos_site_use_bytes(b);
    if (a->site != b->site)
        return a->site < b->site;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->device < b->device;
}

void gos_sort_uses(struct gos_site_use *uses, size_t count)
{
    _Static_assert(sizeof(*uses) <= GOS_SORT_ITEM_MAX, "a use must fit the heap's swap");
    gos_sort_heap(uses, count, sizeof(*uses), use_before);
}

static bool small_before(const void *left, const void *right)
{
    return ((const struct gos_small *)left)->address < ((const struct gos_small *)right)->address;
}

#define DIGITS 8
#define DIGIT_VALUES 256

static unsigned digit_of(uint64_t address, unsigned digit)
{
    return (unsigned)(address >> (8 * digit)) & (DIGIT_VALUES - 1);
}

static void count_digits(const struct gos_small *smalls, size_t count,
                         uint32_t counts[DIGITS][DIGIT_VALUES])
{
    memset(counts, 0, sizeof(uint32_t) * DIGITS * DIGIT_VALUES);
    for (size_t i = 0; i < count; i++)
        for (unsigned digit = 0; digit < DIGITS; digit++)
            counts[digit][digit_of(smalls[i].address, digit)]++;
}

static void scatter(const struct gos_small *from, struct gos_small *to, size_t count,
                    unsigned digit, const uint32_t counts[DIGIT_VALUES])
{
    uint32_t next[DIGIT_VALUES];

    for (uint32_t value = 0, sum = 0; value < DIGIT_VALUES; sum += counts[value++])
        next[value] = sum;
    for (size_t i = 0; i < count; i++)
        to[next[digit_of(from[i].address, digit)]++] = from[i];
}

static void sort_by_radix(struct gos_small *smalls, struct gos_small *spare, size_t count)
{
    uint32_t counts[DIGITS][DIGIT_VALUES];
    struct gos_small *from = smalls, *to = spare;

    count_digits(smalls, count, counts);
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        /* All alike in this byte: the pass would only copy. */
        if (counts[digit][digit_of(smalls[0].address, digit)] == count)
            continue;
        scatter(from, to, count, digit, counts[digit]);
        struct gos_small *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != smalls)
        memcpy(smalls, from, count * sizeof(*smalls));
}

void gos_sort_smalls(struct gos_small *smalls, struct gos_small *spare, size_t count)
{
    if (count < 2)
        return;
    if (spare != NULL && count <= UINT32_MAX)
        sort_by_radix(smalls, spare, count);
    else
        gos_sort_heap(smalls, count, sizeof(*smalls), small_before);
}
