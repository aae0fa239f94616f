#include "phdr_walk.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libc_symbol.h"

typedef int phdr_iterate(gos_phdr_visit *visit, void *arg);

static _Atomic bool stopped;

void gos_phdr_stop(void)
{
    atomic_store_explicit(&stopped, true, memory_order_relaxed);
}

bool gos_phdr_is_stopped(void)
{
    return atomic_load_explicit(&stopped, memory_order_relaxed);
}

int gos_phdr_walk(gos_phdr_visit *visit, void *arg)
{
    static _Atomic(phdr_iterate *) chosen;
    phdr_iterate *iterate = atomic_load_explicit(&chosen, memory_order_acquire);

    if (gos_phdr_is_stopped())
        return 0;
    if (!iterate) {
        uintptr_t found = gos_libc_symbol("dl_iterate_phdr");
        iterate = found ? (phdr_iterate *)found : dl_iterate_phdr;
        atomic_store_explicit(&chosen, iterate, memory_order_release);
    }
    return iterate(visit, arg);
}
