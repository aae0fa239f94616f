#include "watched.h"

struct gos_call gos_watched_failed(enum gos_entrypoint entry, CUstream stream)
{
    struct gos_call call = gos_call_begin(entry, GOS_KIND_NONE, 0);

    call.stream = (uint64_t)(uintptr_t)stream;
    return call;
}
