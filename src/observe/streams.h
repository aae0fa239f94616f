/* Streams in whose order memory was freed, and whether their work is done. */
#ifndef GOS_OBSERVE_STREAMS_H
#define GOS_OBSERVE_STREAMS_H

#include <stdbool.h>

#include "evidence.h"

/*
 * Streams are asked (never waited for) only when `ask` allows driver calls and
 * nothing in the process is being captured: a query can invalidate a capture.
 * One may begin on another thread meanwhile, so the caller has put this thread
 * into relaxed mode, in which its calls break nothing.
 */
void gos_streams_observe(struct gos_evidence *evidence, bool ask);

#endif
