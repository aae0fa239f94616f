/*
 * gpuoomshim: what a program may ask of the library that is preloaded into it.
 *
 * Every function is declared weak, so a program links without the library and
 * runs without it: test the function's address before the call.
 *
 *     if (gpuoomshim_snapshot)
 *         gpuoomshim_snapshot("before-training");
 *
 * From Python: ctypes.CDLL(None).gpuoomshim_live_bytes(0)
 *
 * All functions may be called from any thread at any time, except from a
 * signal handler.  None throws, ends the process or changes errno.
 */
#ifndef GPUOOMSHIM_H
#define GPUOOMSHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUOOMSHIM_WEAK __attribute__((weak))

/*
 * Write a report of what is allocated now: PREFIX.txt and PREFIX.json, as
 * GPUOOMSHIM_REPORT asks; prefix NULL: named like a failure report, in
 * GPUOOMSHIM_REPORT_DIR.  Existing files of that name are replaced.
 * Takes milliseconds; does not synchronize the device.
 * 0, or a negative errno: -ENODEV before the first successful cuInit or with
 * GPUOOMSHIM_DISABLE=1, -EINVAL for a prefix that names no file ("", "reports/"), -EDQUOT
 * after GPUOOMSHIM_REPORT_MAX of them with prefix NULL, others when no file could be written.
 */
GPUOOMSHIM_WEAK int gpuoomshim_snapshot(const char *prefix);

/*
 * Bytes, as requested, and number of live allocations on a device (ordinal as
 * the driver counts it): device, pool, physical, array and managed memory.
 * device -1: pinned host memory.  0 for an unknown device.
 */
GPUOOMSHIM_WEAK uint64_t gpuoomshim_live_bytes(int device);
GPUOOMSHIM_WEAK uint64_t gpuoomshim_live_count(int device);

/* Highest live_bytes so far, to within 4 MiB per 64th of the address space. */
GPUOOMSHIM_WEAK uint64_t gpuoomshim_peak_bytes(int device);

/* Allocations that failed so far, and how many of these the caller survived by itself. */
GPUOOMSHIM_WEAK uint64_t gpuoomshim_failure_count(void);
GPUOOMSHIM_WEAK uint64_t gpuoomshim_survived_count(void);

/*
 * Name what this thread allocates until the matching pop: reports then show
 * "[kv-cache]" beside the lines of code, and count each tag's memory by itself.
 * Tags nest up to 16 deep and the innermost counts; a name has at most 63 bytes
 * and is kept for as long as the process lives, so use few different ones.
 * A pop without a push does nothing.  Both work before the first cuInit.
 */
GPUOOMSHIM_WEAK void gpuoomshim_push_tag(const char *name);
GPUOOMSHIM_WEAK void gpuoomshim_pop_tag(void);

/*
 * For whoever keeps idle device memory (a cache, a pool): a function that gives
 * it back, called when an allocation of somebody else, or a kernel that the
 * driver has to load, finds no memory.  The failing call waits meanwhile, for
 * at most GPUOOMSHIM_FLUSH_BUDGET, and is then repeated.
 *
 * flush is called on a thread of the library, one call at a time, with the
 * failing call's context current.  device is the driver's ordinal; wanted_bytes
 * is what the failing call asked for, 0 where that is unknown.  It returns 0;
 * another number is written into the report.  It may free and allocate; what
 * fails in it is not recovered.  The failing thread may be inside the same
 * library and hold its locks: try them, or wait in vain until the time is over.
 *
 * name is for reports (at most 63 bytes, copied).  At most 16 functions.
 * 0, or -EINVAL, -EEXIST (the same function and argument), -ENOSPC, -ENOMEM.
 *
 * After unregistering the function is not called any more, and no call of it
 * is going on; so do not hold a lock that it needs.  0; -ENOENT: it was not
 * registered; -EBUSY: a call of it did not end within GPUOOMSHIM_FLUSH_BUDGET.
 * Called by the function itself, it does not wait for that call.
 */
GPUOOMSHIM_WEAK int
gpuoomshim_register_flush(const char *name,
                          int (*flush)(void *arg, int device, uint64_t wanted_bytes), void *arg);
GPUOOMSHIM_WEAK int
gpuoomshim_unregister_flush(int (*flush)(void *arg, int device, uint64_t wanted_bytes), void *arg);

#ifdef __cplusplus
}
#endif

#endif
