#include "fallback.h"

#include "../base/hot.h"

#include <stddef.h>

/* A row is FREE, or BUSY while one thread fills or empties it, or it holds an address. */
enum { FREE, BUSY };

static struct row {
    _Atomic uint64_t address;
    struct gos_fallback_memory memory; /* for who made it BUSY, and who frees the address */
    /* Of the memory, for those who only look. */
    _Atomic uint64_t bytes;
    _Atomic uint64_t context;
    _Atomic uint64_t event;
    _Atomic uint32_t device;
    _Atomic uint32_t way;
} rows[GOS_FALLBACK_MAX];

GOS_READ_MOSTLY _Atomic uint32_t gos_fallback_count;

const char *gos_fallback_code(enum gos_fallback fallback)
{
    static const char *const codes[GOS_FALLBACK_COUNT] = {
#define FALLBACK_CODE(name, code) [GOS_FALLBACK_##name] = code,
        GOS_FALLBACKS(FALLBACK_CODE)
#undef FALLBACK_CODE
    };
    return (unsigned)fallback < GOS_FALLBACK_COUNT ? codes[fallback] : "";
}

static bool change(struct row *row, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong(&row->address, &from, to);
}

static void fill(struct row *row, const struct gos_fallback_memory *memory)
{
    row->memory = *memory;
    atomic_store(&row->bytes, memory->bytes);
    atomic_store(&row->context, memory->context);
    atomic_store(&row->event, memory->event);
    atomic_store(&row->device, memory->device);
    atomic_store(&row->way, memory->way);
}

bool gos_fallback_add(const struct gos_fallback_memory *memory)
{
    for (size_t i = 0; i < GOS_FALLBACK_MAX; i++) {
        if (!change(&rows[i], FREE, BUSY))
            continue;
        fill(&rows[i], memory);
        atomic_fetch_add(&gos_fallback_count, 1);
        atomic_store(&rows[i].address, memory->address);
        return true;
    }
    return false;
}

static void empty(struct row *row)
{
    atomic_fetch_sub(&gos_fallback_count, 1);
    atomic_store(&row->address, FREE);
}

/* Nobody frees one address twice at the same time, so what is found stays as long as it is read. */
static struct row *find(uint64_t address)
{
    for (size_t i = 0; address > BUSY && i < GOS_FALLBACK_MAX; i++)
        if (atomic_load(&rows[i].address) == address && atomic_load(&rows[i].event) == 0)
            return &rows[i];
    return NULL;
}

bool gos_fallback_find(uint64_t address, struct gos_fallback_memory *found)
{
    const struct row *row = find(address);

    if (row)
        *found = row->memory;
    return row != NULL;
}

bool gos_fallback_take(uint64_t address, struct gos_fallback_memory *taken)
{
    struct row *row = find(address);

    if (!row || !change(row, address, BUSY))
        return false;
    *taken = row->memory;
    empty(row);
    return true;
}

static bool take_if_over(struct row *row, bool (*is_over)(uint64_t event),
                         struct gos_fallback_memory *taken)
{
    uint64_t address = atomic_load(&row->address);

    if (address <= BUSY || atomic_load(&row->event) == 0 || !change(row, address, BUSY))
        return false;
    *taken = row->memory;
    if (taken->event != 0 && is_over(taken->event)) {
        empty(row);
        return true;
    }
    atomic_store(&row->address, address);
    return false;
}

bool gos_fallback_take_freed(bool (*is_over)(uint64_t event), struct gos_fallback_memory *taken)
{
    for (size_t i = 0; i < GOS_FALLBACK_MAX; i++)
        if (take_if_over(&rows[i], is_over, taken))
            return true;
    return false;
}

/* What is read of a row that changes hands meanwhile may be of both. */
static void add_if_of(const struct row *row, uint32_t device, enum gos_fallback way,
                      struct gos_total *total)
{
    uint64_t address = atomic_load(&row->address);
    uint64_t bytes = atomic_load(&row->bytes);

    if (address <= BUSY || atomic_load(&row->device) != device || atomic_load(&row->way) != way ||
        atomic_load(&row->address) != address)
        return;
    total->live_bytes += bytes;
    total->live_count++;
}

struct gos_total gos_fallback_total(uint32_t device, enum gos_fallback way)
{
    struct gos_total total = {0, 0};

    for (size_t i = 0; i < GOS_FALLBACK_MAX; i++)
        add_if_of(&rows[i], device, way, &total);
    return total;
}

void gos_fallback_context_ended(uint64_t context)
{
    for (size_t i = 0; atomic_load(&gos_fallback_count) > 0 && i < GOS_FALLBACK_MAX; i++) {
        uint64_t address = atomic_load(&rows[i].address);
        if (address > BUSY && atomic_load(&rows[i].context) == context &&
            change(&rows[i], address, BUSY))
            empty(&rows[i]);
    }
}

void gos_fallback_reset_after_fork(void)
{
    for (size_t i = 0; i < GOS_FALLBACK_MAX; i++)
        atomic_store(&rows[i].address, FREE);
    atomic_store(&gos_fallback_count, 0);
}
