/*
 * How much of each device this process may use (GPUOOMSHIM_LIMIT), and how
 * much it does: a reckoning that is never below the truth, so that an
 * allocation which is admitted fits.
 *
 *     used = booked     device blocks, physical memory, arrays: exact, by the registry's records
 *          + drawn      pools and graphs: as last measured, and all that was asked of them since
 *          + unbooked   contexts and modules: as last measured
 *          + in flight  reserved for calls that the driver has not answered yet
 *
 * Managed memory moves to the host when a device is full and takes nothing
 * here; what was imported belongs to its exporter.
 *
 * The order of one allocation: reserve, ask the driver, record (which books),
 * release.  Of one free: hold, forget the record, ask the driver, let go; so
 * the room is there for others only when it really is.
 *
 * Hook context: yes.  Takes one lock, of a rank above the registry's; nothing
 * here calls the driver (allowance_measure.h does).
 */
#ifndef GOS_TRACK_ALLOWANCE_H
#define GOS_TRACK_ALLOWANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../base/limit_option.h"
#include "registry.h"

/* Requests up to this size share a block of 2 MiB with others; larger ones take whole blocks. */
#define GOS_ALLOWANCE_SMALL_BYTES ((uint64_t)1 << 20)
#define GOS_ALLOWANCE_BLOCK_BYTES ((uint64_t)2 << 20)
/* Pools grow by this much at a time [measured on an H200, driver 580]. */
#define GOS_ALLOWANCE_CHUNK_BYTES ((uint64_t)32 << 20)

extern _Atomic bool gos_allowance_on;

/* Is any device limited?  Set once, before memory is allocated. */
static inline bool gos_allowance_is_on(void)
{
    return __builtin_expect(atomic_load_explicit(&gos_allowance_on, memory_order_relaxed), 0);
}

void gos_allowance_open(const struct gos_limit_option *limit);

/* Of the device, in bytes; 0: none. */
uint64_t gos_allowance_limit(uint32_t device);
/* In flight included; may be too much, never too little. */
uint64_t gos_allowance_used(uint32_t device);

/* What the device must have for it: whole blocks; UINT64_MAX for what is beyond any device. */
uint64_t gos_allowance_cost(enum gos_kind kind, uint64_t bytes);

/* --- before and after a call ------------------------------------------------------------------ */

/* All or nothing: false when with these bytes the limit would be passed. */
bool gos_allowance_reserve(uint32_t device, uint64_t bytes);
void gos_allowance_release(uint32_t device, uint64_t bytes);
/* A reservation becomes memory of a pool. */
void gos_allowance_draw(uint32_t device, uint64_t bytes);

/*
 * The driver served a small request for which there was no room but in a
 * shared block.  True: it lies in a block that is on the books, or one more
 * fits; the block stays booked until gos_allowance_unclaim.  False: it must go back.
 */
bool gos_allowance_claim(uint32_t device, uint64_t address);
void gos_allowance_unclaim(uint32_t device, uint64_t address);

/* Around the forgetting of a record and the driver's free: its bytes stay in use until then. */
void gos_allowance_hold_slow(void);
void gos_allowance_let_go_slow(void);
static inline void gos_allowance_hold(void)
{
    if (gos_allowance_is_on())
        gos_allowance_hold_slow();
}
static inline void gos_allowance_let_go(void)
{
    if (gos_allowance_is_on())
        gos_allowance_let_go_slow();
}

/* By the registry, under a shard's lock: a record was born or is gone. */
void gos_allowance_book(enum gos_kind kind, uint32_t device, uint64_t address, uint64_t bytes,
                        bool born);

/* --- what was measured ------------------------------------------------------------------------ */

/* Taken before the driver is asked, so that what happens meanwhile is not lost. */
struct gos_allowance_mark {
    uint64_t released_bytes;
    uint64_t drawn_bytes;
    uint64_t booked_bytes;
};
struct gos_allowance_mark gos_allowance_mark(uint32_t device);
/* Pools and graphs held so much at some moment since the mark. */
void gos_allowance_set_drawn(uint32_t device, const struct gos_allowance_mark *mark,
                             uint64_t bytes);
/*
 * This process held so much of the device at some moment since the mark, by
 * somebody who sees everything.  Ignored, and false, unless nothing happened
 * meanwhile and nothing is in flight.
 */
bool gos_allowance_set_own(uint32_t device, const struct gos_allowance_mark *mark, uint64_t bytes);
/* A context costs so much, where nobody sees everything; 0: there is none any more. */
void gos_allowance_set_unbooked(uint32_t device, uint64_t bytes);
uint64_t gos_allowance_unbooked(uint32_t device);

/* Did a call end since the mark?  Then a refusal may rest on bytes that were counted twice. */
bool gos_allowance_moved(uint32_t device, const struct gos_allowance_mark *mark);
/* Is something in flight? */
bool gos_allowance_is_busy(uint32_t device);

/* In a forked child: nothing is used; the limits stay. */
void gos_allowance_reset_after_fork(void);

#endif
