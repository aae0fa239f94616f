/*
 * The rules.  Each looks at a situation, and when it applies fills code,
 * confidence, summary, evidence and advice and returns true.  Pure: the same
 * situation gives the same words.  The order in which they are asked is the
 * order of suspicion, in verdict.c.
 */
#ifndef GOS_DIAGNOSE_RULE_H
#define GOS_DIAGNOSE_RULE_H

#include <stdbool.h>

#include "situation.h"

typedef bool gos_rule(const struct gos_situation *situation, struct gos_verdict *verdict);

/* rule_call.c: the result code or the process says it. */
gos_rule gos_rule_forked;
gos_rule gos_rule_in_capture;
gos_rule gos_rule_mps_limit;
gos_rule gos_rule_driver_or_context;
gos_rule gos_rule_first_allocation;
/* rule_request.c: the size says it. */
gos_rule gos_rule_not_a_size;
gos_rule gos_rule_larger_than_device;
gos_rule gos_rule_larger_than_empty;
/* rule_host.c: the host's memory and limits. */
gos_rule gos_rule_address_limit;
gos_rule gos_rule_host_memory;
gos_rule gos_rule_shared_memory;
gos_rule gos_rule_locked_limit;
gos_rule gos_rule_commit_limit;
gos_rule gos_rule_cgroup;
gos_rule gos_rule_map_count;
gos_rule gos_rule_address_space;
/* rule_policy.c */
gos_rule gos_rule_mps_pinned_limit;
/* rule_rehearsal.c */
gos_rule gos_rule_injected;
gos_rule gos_rule_own_limit;
/* rule_unused.c: enough is unused, but not free. */
gos_rule gos_rule_pending_free;
gos_rule gos_rule_pool_held;
gos_rule gos_rule_blocks_fragmented;
gos_rule gos_rule_pool_fragmented;
gos_rule gos_rule_pool_pieces;
gos_rule gos_rule_cache_opaque;
/* rule_framework.c: a framework said so itself. */
gos_rule gos_rule_framework_held;
gos_rule gos_rule_framework_fragmented;
/* rule_others.c, rule_exhausted.c: it is all in use. */
gos_rule gos_rule_others;
gos_rule gos_rule_process;
/*
 * rule_leak.c: one line keeps more and more; the first where it grew by more
 * than others hold and than lies unused, each taken for itself.  The second is about
 * any growth, far larger than what lies unused: what applies when pieces are left aside.
 */
gos_rule gos_rule_outgrown;
gos_rule gos_rule_outgrown_pieces;
gos_rule gos_rule_leak;
/* rule_unexplained.c: always applies. */
gos_rule gos_rule_unexplained;

/* rule_refused.c: a framework refused, out of a pool of its own; no call of CUDA failed. */
gos_rule gos_rule_refused;
/* Likewise: what lines of the program hold of that framework, and the advice to begin there. */
void gos_verdict_say_lines(const struct gos_situation *situation, struct gos_verdict *verdict);

/*
 * rule_framework.c: would what it does not use be enough, if it were whole?  Of a segment that it
 * was refused a piece of, all that is known of it.
 */
bool gos_framework_has_enough(const struct gos_situation *situation,
                              const struct gos_framework_evidence *framework);

/*
 * rule_framework.c: what that library said of the device in question; NULL: it was not asked, or
 * did not say.
 */
const struct gos_framework_evidence *gos_framework_word(const struct gos_situation *situation,
                                                        const char *library);

/* A framework's own numbers, as lines of evidence. */
void gos_framework_say(const struct gos_situation *situation,
                       const struct gos_framework_evidence *framework, struct gos_verdict *verdict);

/* Add a line; NULL, "" and what does not fit are left out. */
void gos_verdict_say(struct gos_verdict *verdict, const char *line);
void gos_verdict_advise(struct gos_verdict *verdict, const char *line);

/* rule_others.c: what others hold; they are the runner-up where the request would fit without it.
 */
void gos_verdict_say_others(const struct gos_situation *situation, struct gos_verdict *verdict);

/* rule_leak.c: beside a verdict of another code that one line keeps more and more; else nothing. */
void gos_verdict_say_leak(const struct gos_situation *situation, struct gos_verdict *verdict);
/*
 * rule_request.c: that the size lies within a page of 2^31 or 2^32, but not on
 * it, where the verdict is about memory that ran out; else nothing.
 */
void gos_verdict_say_shape(const struct gos_situation *situation, struct gos_verdict *verdict);

/* rule_leak.c: that memory grew, where it is no leak's verdict; nothing when it did not. */
void gos_verdict_say_growth(const struct gos_situation *situation, struct gos_verdict *verdict);

/* rule_leak.c: what to do if it is a leak, where nothing shows whether it is; else nothing. */
void gos_verdict_advise_growth(const struct gos_situation *situation, struct gos_verdict *verdict);

#endif
