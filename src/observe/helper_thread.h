/*
 * One thread of our own, for work that may wait for the host: its locks, its
 * interpreter.  It is made for one piece of work, when that is needed, and
 * ends with it, so that a process never keeps a thread that it did not make.
 *
 * There is one at a time.  When it does not answer in time it is left alone,
 * and there is no other until it does.
 *
 * Signals stay with the host's threads, apart from those that a thread causes
 * itself.  What fails on this thread starts no recovery (gos_thread.is_helper);
 * in everything else it is a host's thread: what it frees is recorded.  Its
 * capture mode is relaxed: a capture that begins while it works must not suffer.
 *
 *     if (gos_helper_claim()) {
 *         … fill what work reads …
 *         if (gos_helper_run(work, timeout_ns) == 0)
 *             … read what work wrote …
 *             gos_helper_release();
 *     }
 *
 * Hook context, but for one thing: making a thread lets the C library allocate.
 */
#ifndef GOS_OBSERVE_HELPER_THREAD_H
#define GOS_OBSERVE_HELPER_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* False while an earlier piece of work has not ended. */
__attribute__((warn_unused_result)) bool gos_helper_claim(void);

/* The same, waiting for it. */
__attribute__((warn_unused_result)) bool gos_helper_claim_within(uint64_t timeout_ns);

/*
 * Run work on the helper and wait for its end.  0; -ETIMEDOUT: it goes on by
 * itself, and the claim passes to it; another -errno: there is no thread, and
 * the claim remains.
 */
__attribute__((warn_unused_result)) int gos_helper_run(void (*work)(void), uint64_t timeout_ns);

/*
 * Let the helper run work loose: nobody waits for it, and the claim passes to
 * it.  0; -errno: there is no thread, and the claim remains.
 */
__attribute__((warn_unused_result)) int gos_helper_start(void (*work)(void));

/* After gos_helper_run gave anything but -ETIMEDOUT, or gos_helper_start anything but 0. */
void gos_helper_release(void);

/* Asked by work that is not loose: nobody waits any more, so it should end. */
bool gos_helper_is_abandoned(void);

void gos_helper_reset_after_fork(void);

#endif
