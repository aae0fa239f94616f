#include "watched.h"

#include "../observe/evidence.h"

bool gos_watched_is_injected(enum gos_entrypoint entry)
{
    struct gos_call call = gos_call_begin(entry, GOS_KIND_NONE, 0);

    gos_rehearsal_admits(&call);
    return call.rehearsed && gos_rehearsal_refusal() == GOS_REFUSAL_INJECTED;
}

struct gos_call gos_watched_failed(enum gos_entrypoint entry, CUstream stream, bool injected)
{
    struct gos_call call = gos_call_begin(entry, GOS_KIND_NONE, 0);

    call.stream = (uint64_t)(uintptr_t)stream;
    call.rehearsed = injected;
    return call;
}
