/* reserve: what was held back for this moment is given up (reserve.h). */
#ifndef GOS_RECOVER_STEP_RESERVE_H
#define GOS_RECOVER_STEP_RESERVE_H

#include "ladder.h"

bool gos_step_reserve_is_asked_for(void);
bool gos_step_reserve_may_help(const struct gos_ladder *ladder, const char **why_not);
/* Fills result, reason, cuda_result.  True when a retry makes sense. */
bool gos_step_reserve_run(struct gos_ladder *ladder, struct gos_step_record *record);

#endif
