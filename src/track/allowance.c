#include "allowance.h"

#include "../base/hot.h"
#include "../base/lock.h"
#include "block_count.h"

_Static_assert(GOS_LIMIT_DEVICES == GOS_DEVICE_MAX, "each device may have a limit");

GOS_READ_MOSTLY _Atomic bool gos_allowance_on;

static struct allowance {
    uint64_t limit_bytes;
    uint64_t booked_bytes;
    uint64_t drawn_bytes;
    uint64_t unbooked_bytes;
    uint64_t reserved_bytes; /* all ever reserved; less what was released: in flight */
    uint64_t released_bytes;
    uint64_t ever_drawn_bytes;
    struct gos_block_count blocks;
} allowances[GOS_DEVICE_MAX];

/* One for all devices: their slabs are shared, and a rehearsal is not a race. */
static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_ALLOWANCE);

/* What this thread's free keeps in use until the driver has done it. */
static __thread struct {
    bool active;
    uint32_t device;
    uint64_t bytes;
} held __attribute__((tls_model("initial-exec")));

void gos_allowance_open(const struct gos_limit_option *limit)
{
    for (uint32_t i = 0; i < GOS_DEVICE_MAX; i++) {
        allowances[i].limit_bytes = limit->bytes[i];
        if (limit->bytes[i] != 0)
            atomic_store(&gos_allowance_on, true);
    }
}

uint64_t gos_allowance_limit(uint32_t device)
{
    return device < GOS_DEVICE_MAX ? allowances[device].limit_bytes : 0;
}

static uint64_t in_flight(const struct allowance *of)
{
    return of->reserved_bytes - of->released_bytes;
}

static uint64_t used(const struct allowance *of)
{
    return of->booked_bytes + of->drawn_bytes + of->unbooked_bytes + in_flight(of);
}

uint64_t gos_allowance_used(uint32_t device)
{
    uint64_t bytes = 0;

    if (device < GOS_DEVICE_MAX) {
        gos_lock_acquire(&lock);
        bytes = used(&allowances[device]);
        gos_lock_release(&lock);
    }
    return bytes;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

uint64_t gos_allowance_cost(enum gos_kind kind, uint64_t bytes)
{
    if (kind == GOS_KIND_DEVICE || kind == GOS_KIND_PHYSICAL || kind == GOS_KIND_ARRAY)
        return round_up(bytes, GOS_ALLOWANCE_BLOCK_BYTES);
    return kind == GOS_KIND_POOL ? round_up(bytes, GOS_ALLOWANCE_CHUNK_BYTES) : 0;
}

/* --- before and after a call -------------------------------------------------------------------
 */

static bool fits(const struct allowance *of, uint64_t bytes)
{
    uint64_t taken = used(of);

    return taken <= of->limit_bytes && bytes <= of->limit_bytes - taken;
}

bool gos_allowance_reserve(uint32_t device, uint64_t bytes)
{
    struct allowance *of = &allowances[device];
    bool granted;

    gos_lock_acquire(&lock);
    granted = fits(of, bytes);
    if (granted)
        of->reserved_bytes += bytes;
    gos_lock_release(&lock);
    return granted;
}

void gos_allowance_release(uint32_t device, uint64_t bytes)
{
    gos_lock_acquire(&lock);
    allowances[device].released_bytes += bytes;
    gos_lock_release(&lock);
}

void gos_allowance_draw(uint32_t device, uint64_t bytes)
{
    struct allowance *of = &allowances[device];

    gos_lock_acquire(&lock);
    of->released_bytes += bytes;
    of->drawn_bytes += bytes;
    of->ever_drawn_bytes += bytes;
    gos_lock_release(&lock);
}

static void add_block(struct allowance *of, uint64_t address)
{
    if (gos_block_count_add(&of->blocks, address))
        of->booked_bytes += GOS_ALLOWANCE_BLOCK_BYTES;
}

static uint64_t drop_block(struct allowance *of, uint64_t address)
{
    return gos_block_count_drop(&of->blocks, address) ? GOS_ALLOWANCE_BLOCK_BYTES : 0;
}

bool gos_allowance_claim(uint32_t device, uint64_t address)
{
    struct allowance *of = &allowances[device];
    bool granted;

    gos_lock_acquire(&lock);
    granted = gos_block_count_has(&of->blocks, address) || fits(of, GOS_ALLOWANCE_BLOCK_BYTES);
    if (granted)
        add_block(of, address);
    gos_lock_release(&lock);
    return granted;
}

void gos_allowance_unclaim(uint32_t device, uint64_t address)
{
    struct allowance *of = &allowances[device];

    gos_lock_acquire(&lock);
    of->booked_bytes -= drop_block(of, address);
    gos_lock_release(&lock);
}

void gos_allowance_hold_slow(void)
{
    held.active = true;
    held.bytes = 0;
}

void gos_allowance_let_go_slow(void)
{
    held.active = false;
    if (held.bytes > 0)
        gos_allowance_release(held.device, held.bytes);
    held.bytes = 0;
}

static void unbook(struct allowance *of, uint32_t device, uint64_t bytes)
{
    of->booked_bytes -= bytes;
    if (!held.active)
        return;
    of->reserved_bytes += bytes;
    held.device = device;
    held.bytes += bytes;
}

static bool is_small(enum gos_kind kind, uint64_t bytes)
{
    return kind == GOS_KIND_DEVICE && bytes <= GOS_ALLOWANCE_SMALL_BYTES;
}

void gos_allowance_book(enum gos_kind kind, uint32_t device, uint64_t address, uint64_t bytes,
                        bool born)
{
    struct allowance *of;

    if (device >= GOS_DEVICE_MAX || !gos_kind_on_device_books(kind))
        return;
    of = &allowances[device];
    gos_lock_acquire(&lock);
    if (is_small(kind, bytes) && born)
        add_block(of, address);
    else if (is_small(kind, bytes))
        unbook(of, device, drop_block(of, address));
    else if (born)
        of->booked_bytes += gos_allowance_cost(kind, bytes);
    else
        unbook(of, device, gos_allowance_cost(kind, bytes));
    gos_lock_release(&lock);
}

/* --- what was measured -------------------------------------------------------------------------
 */

struct gos_allowance_mark gos_allowance_mark(uint32_t device)
{
    const struct allowance *of = &allowances[device];
    struct gos_allowance_mark mark;

    gos_lock_acquire(&lock);
    mark = (struct gos_allowance_mark){of->released_bytes, of->ever_drawn_bytes, of->booked_bytes};
    gos_lock_release(&lock);
    return mark;
}

void gos_allowance_set_drawn(uint32_t device, const struct gos_allowance_mark *mark, uint64_t bytes)
{
    struct allowance *of = &allowances[device];

    gos_lock_acquire(&lock);
    of->drawn_bytes = bytes + (of->ever_drawn_bytes - mark->drawn_bytes);
    gos_lock_release(&lock);
}

static bool is_quiet(const struct allowance *of, const struct gos_allowance_mark *mark)
{
    return in_flight(of) == 0 && of->released_bytes == mark->released_bytes &&
           of->booked_bytes == mark->booked_bytes;
}

bool gos_allowance_set_own(uint32_t device, const struct gos_allowance_mark *mark, uint64_t bytes)
{
    struct allowance *of = &allowances[device];
    bool quiet;

    gos_lock_acquire(&lock);
    quiet = is_quiet(of, mark);
    if (quiet) {
        uint64_t known = of->booked_bytes + of->drawn_bytes;
        of->unbooked_bytes = bytes > known ? bytes - known : 0;
    }
    gos_lock_release(&lock);
    return quiet;
}

void gos_allowance_set_unbooked(uint32_t device, uint64_t bytes)
{
    gos_lock_acquire(&lock);
    allowances[device].unbooked_bytes = bytes;
    gos_lock_release(&lock);
}

uint64_t gos_allowance_unbooked(uint32_t device)
{
    uint64_t bytes;

    gos_lock_acquire(&lock);
    bytes = allowances[device].unbooked_bytes;
    gos_lock_release(&lock);
    return bytes;
}

bool gos_allowance_moved(uint32_t device, const struct gos_allowance_mark *mark)
{
    const struct allowance *of = &allowances[device];
    bool moved;

    gos_lock_acquire(&lock);
    moved = of->released_bytes != mark->released_bytes || of->booked_bytes != mark->booked_bytes;
    gos_lock_release(&lock);
    return moved;
}

bool gos_allowance_is_busy(uint32_t device)
{
    bool busy;

    gos_lock_acquire(&lock);
    busy = in_flight(&allowances[device]) != 0;
    gos_lock_release(&lock);
    return busy;
}

void gos_allowance_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    held.active = false;
    held.bytes = 0;
    for (uint32_t i = 0; i < GOS_DEVICE_MAX; i++) {
        uint64_t limit_bytes = allowances[i].limit_bytes;
        gos_block_count_reset_after_fork(&allowances[i].blocks);
        allowances[i] = (struct allowance){.limit_bytes = limit_bytes};
    }
}
