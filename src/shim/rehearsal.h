/*
 * Rehearsals: GPUOOMSHIM_LIMIT makes a device act as a smaller one,
 * GPUOOMSHIM_INJECT makes chosen calls fail.  A call that is refused is never
 * made; what the host gets is what the driver would have given: error 2, and a
 * NULL pointer where the driver writes one.
 *
 * The driver answers first where it has more to say than "out of memory": a
 * missing context, a size of 0, a context that an earlier error broke.
 *
 * What is known of a call beyond struct gos_call lies with the thread: it is in
 * one call at a time.  With neither setting a hook pays one branch.  Hook context, all of it; with
 * one of them, the slow part asks the driver.
 */
#ifndef GOS_SHIM_REHEARSAL_H
#define GOS_SHIM_REHEARSAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../cuda/cuda_types.h"

#include "../observe/evidence.h"

struct gos_call;

extern _Atomic bool gos_rehearsing;

/* Is anything rehearsed?  Known once the shim has started. */
static inline bool gos_rehearsal_is_on(void)
{
    return __builtin_expect(atomic_load_explicit(&gos_rehearsing, memory_order_relaxed), 0);
}

/* Take the settings over and say once on stderr what is rehearsed. */
void gos_rehearsal_open(void);
/* How many calls it has met so far. */
struct gos_rehearsed gos_rehearsal_count(void);
/* The process ends: say so on stderr. */
void gos_rehearsal_close(void);

/* Is the driver to be asked?  Reserves what the call may take; false: gos_refuse. */
bool gos_rehearsal_admits(struct gos_call *call);
/* The same for a context beside others, by what the first one of the device took. */
bool gos_rehearsal_admits_context(struct gos_call *call);
/*
 * The driver was asked although there is hardly room: what it gave is kept only
 * if it fits.  Returns what the hook goes on with.
 */
CUresult gos_rehearsal_keep(struct gos_call *call, CUresult result, CUdeviceptr *pointer);
/* Why the call that this thread is in was refused. */
enum gos_refusal gos_rehearsal_refusal(void);
/* The driver's answer is final, for this attempt: what was reserved is given back or booked. */
void gos_rehearsal_settle(struct gos_call *call, CUresult result);

/* What the host is told a device has; unchanged on a device without a limit. */
struct gos_shown_memory {
    uint64_t free_bytes;
    uint64_t total_bytes;
};
void gos_rehearsal_show(uint32_t device, struct gos_shown_memory *shown);

/* A context was made on, or has gone from, that device. */
void gos_rehearsal_context_made(uint32_t device, CUcontext context);
void gos_rehearsal_context_ended(uint32_t device);

void gos_rehearsal_reset_after_fork(void);

#endif
