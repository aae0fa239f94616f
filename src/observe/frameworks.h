/*
 * What frameworks say they hold, asked of the host's interpreter: from
 * sys.modules only, nothing is ever imported or initialised.
 *
 * The asking is done on the helper thread, under the GIL, for a framework may
 * need a lock of its own.  One whose allocator is on the calling stack holds
 * that lock: it is not asked now, but may be once the call has returned.
 *
 * An exception, a missing name, numbers that cannot be: that framework stays
 * unknown, and a line of incomplete says so.
 */
#ifndef GOS_OBSERVE_FRAMEWORKS_H
#define GOS_OBSERVE_FRAMEWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evidence.h"

/* Who: bits. */
enum { GOS_FRAMEWORK_TORCH = 1u << 0, GOS_FRAMEWORK_CUPY = 1u << 1, GOS_FRAMEWORK_JAX = 1u << 2 };

#define GOS_FRAMEWORKS_ANSWER_BYTES 16384

/*
 * Those that may be asked by a thread in this place, and in *inside those
 * whose allocator it is inside of.  0 and 0 where nobody may be: no
 * interpreter, a forked child, a capture, an unreadable stack (the last two
 * are said in incomplete).  Walks the stack.  Hook context.
 */
uint32_t gos_frameworks_askable(struct gos_evidence *evidence, uint32_t *inside);

/*
 * Ask them now and fill evidence->frameworks, waiting no longer than that.  A
 * calling thread that holds the GIL lets go of it for the wait.  With
 * snapshot_path torch also pickles its snapshot to that file, which must not
 * exist: private, complete or absent.
 *
 * Hook context, but for making a thread; no lock is held by the caller but the
 * turn to recover.
 */
void gos_frameworks_observe(struct gos_evidence *evidence, uint32_t who, uint64_t timeout_ns,
                            const char *snapshot_path);

/*
 * Ask them at once, on this thread of the host's, which has the GIL and is in
 * Python's own code: inside no allocator, under no lock.  Nothing is waited
 * for but the frameworks themselves.  gos_thread.depth must be zero: what the
 * script makes the host free has to be seen.
 */
void gos_frameworks_observe_held(struct gos_evidence *evidence, uint32_t who);

/*
 * Ask them on the helper while nobody waits; then, still there and without the
 * GIL, answered(answer, arg), also when there was no answer ("").  0; -EBUSY,
 * or why there is no thread: answered is not called.  Reads of the evidence
 * only what it needs to ask, before it returns.  A caller without the GIL waits
 * until the helper has it, for a few milliseconds at most.  Hook context.
 */
__attribute__((warn_unused_result)) int
gos_frameworks_start(const struct gos_evidence *evidence, uint32_t who, const char *snapshot_path,
                     void (*answered)(const char *answer, void *arg), void *arg);

/* Read an answer into the evidence; is_late as in gos_framework_evidence. */
void gos_frameworks_read(struct gos_evidence *evidence, const char *answer, bool is_late);

/*
 * What a framework's own word says (request.is_word): its totals.  torch has
 * emptied its cache before it gives up, so what is unused lies in pieces.
 */
void gos_frameworks_by_word(struct gos_evidence *evidence);

#endif
