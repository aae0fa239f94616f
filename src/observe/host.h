/* The host's memory and the limits on this process. */
#ifndef GOS_OBSERVE_HOST_H
#define GOS_OBSERVE_HOST_H

#include "evidence.h"

void gos_host_observe(struct gos_evidence *evidence);

#endif
