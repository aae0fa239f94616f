#include "step_reserve.h"

#include "../base/options.h"
#include "../cuda/cuda_types.h"
#include "../track/held.h"
#include "reserve.h"

bool gos_step_reserve_is_asked_for(void)
{
    return gos_options.reserve > 0;
}

/* With what the next two steps may give; where that is too little, it is kept for another day. */
static bool is_enough(const struct gos_diagnosis *diagnosis, uint64_t held_bytes)
{
    const struct gos_verdict *verdict = &diagnosis->verdict;

    return verdict->short_bytes <= held_bytes + verdict->pending_bytes + verdict->idle_bytes;
}

bool gos_step_reserve_may_help(const struct gos_ladder *ladder, const char **why_not)
{
    uint64_t held_bytes = gos_held_bytes((uint32_t)ladder->diagnosis->device);

    if (held_bytes == 0)
        *why_not = "nothing is held in reserve now";
    else if (!is_enough(ladder->diagnosis, held_bytes))
        *why_not = "the reserve would be too little";
    else
        return true;
    return false;
}

bool gos_step_reserve_run(struct gos_ladder *ladder, struct gos_step_record *record)
{
    uint64_t given_bytes;

    record->cuda_result = gos_reserve_give_up((uint32_t)ladder->diagnosis->device, &given_bytes);
    record->result = record->cuda_result == CUDA_SUCCESS ? "no help" : "error";
    if (record->cuda_result != CUDA_SUCCESS)
        record->reason = "the driver did not take the reserve back";
    return given_bytes > 0;
}
