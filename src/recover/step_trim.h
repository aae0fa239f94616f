/* trim: pools and graph memory give back what they keep idle. */
#ifndef GOS_RECOVER_STEP_TRIM_H
#define GOS_RECOVER_STEP_TRIM_H

#include "ladder.h"

bool gos_step_trim_may_help(const struct gos_ladder *ladder, const char **why_not);
/* Fills result, reason, cuda_result.  True when a retry makes sense. */
bool gos_step_trim_run(struct gos_ladder *ladder, struct gos_step_record *record);

#endif
