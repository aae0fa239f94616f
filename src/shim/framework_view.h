/*
 * When frameworks are asked what they hold.
 *
 * Before the ladder those that may be, while the failing call waits; none when
 * its thread holds the GIL, which is not let go of to look (observe/gil.h).  One
 * whose allocator is on the failing stack only once the call has returned: its
 * answer goes into the kept failure, whose report is then written anew.
 */
#ifndef GOS_SHIM_FRAMEWORK_VIEW_H
#define GOS_SHIM_FRAMEWORK_VIEW_H

#include <stdint.h>

#include "../observe/evidence.h"
#include "../report/report.h"

/* On the failing thread: ask those who may be asked; the others, to be asked later. */
uint32_t gos_view_take(struct gos_evidence *evidence, const struct gos_report *report);

/* That the evidence lacks those who are asked later; taken back when their answer is there. */
void gos_view_announce(struct gos_evidence *evidence, uint32_t later);
void gos_view_arrived(struct gos_evidence *evidence);

/*
 * The failing call is about to return, and its failure was kept under that
 * ticket: ask them on the helper.  Waits for nothing.
 */
void gos_view_take_later(const struct gos_evidence *evidence, const struct gos_report *report,
                         uint32_t later, uint64_t ticket);

/* The process ends: wait a moment for a report that is just being written anew. */
void gos_view_settle(void);

void gos_view_reset_after_fork(void);

#endif
