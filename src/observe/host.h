/* The host's memory and the limits on this process. */
#ifndef GOS_OBSERVE_HOST_H
#define GOS_OBSERVE_HOST_H

#include "evidence.h"

void gos_host_observe(struct gos_evidence *evidence);

/* The host's name alone, which is in the names of files; "" unknown. */
void gos_host_name(struct gos_host_evidence *host);

#endif
