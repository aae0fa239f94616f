/*
 * Taking one moment's evidence.  Read only: no context is created, the calling
 * thread's current context and capture mode are as before on return, no stream
 * is waited for, and nothing is asked of the driver that could break a capture.
 *
 * What could not be seen is said in the evidence's incomplete lines; a part
 * that fails leaves the others alone.
 */
#ifndef GOS_OBSERVE_OBSERVE_H
#define GOS_OBSERVE_OBSERVE_H

#include "evidence.h"

/*
 * CHEAP: request, registry, recent events, free and total of each device.
 * MOMENT: also pools, streams, graph memory, growth: with CHEAP, what changes
 * quickly and can be had in well under a millisecond.
 * ALL: also NVML, processes, host, versions, environment.
 */
enum {
    GOS_OBSERVE_CHEAP = 1u << 0,
    GOS_OBSERVE_MOMENT = GOS_OBSERVE_CHEAP | 1u << 1,
    GOS_OBSERVE_ALL = GOS_OBSERVE_MOMENT | 1u << 2
};

/*
 * Fill a zeroed evidence.  request is NULL for a snapshot or exit report; its
 * strings must outlive the evidence.  0, or -ENOMEM when no scratch memory
 * could be had at all (totals and the request are filled even then).
 *
 * Hook context: yes; takes the locks of track one at a time.  The caller holds
 * at most the locks of turn and report.  Release with gos_observe_release.
 */
int gos_observe(struct gos_evidence *evidence, const struct gos_request *request, unsigned parts);

/*
 * Add what ALL has beyond MOMENT to evidence of a moment long ago, but for NVML
 * and the processes: they would not be of that moment.  incomplete says so.
 */
void gos_observe_lasting(struct gos_evidence *evidence);

/*
 * Must the driver not be asked about a failure with this result?  In a forked
 * child it is the parent's: it answers nothing and may hang.  800 is what a host
 * function of a stream gets, in which a call of the driver may wait for itself.
 */
bool gos_observe_forbids_driver(int result);

/* Give the scratch memory back and zero the evidence. */
void gos_observe_release(struct gos_evidence *evidence);

/*
 * In the cuInit hook: remember which process initialises CUDA and its
 * environment.  The first call counts, later ones (and those of a forked child)
 * do nothing.
 */
void gos_observe_at_first_use(void);

/* In a forked child: the helper is gone, and no lock is held. */
void gos_observe_reset_after_fork(void);

#endif
