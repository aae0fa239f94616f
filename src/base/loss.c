#include "loss.h"

#include <stdatomic.h>
#include <stddef.h>

#include "log.h"

static _Atomic uint64_t counts[GOS_LOSS_COUNT];
static _Atomic(const char *) reason;

static const char *const names[GOS_LOSS_COUNT] = {
    [GOS_LOSS_MEMORY] = "metadata memory",     [GOS_LOSS_UNTRACKED] = "untracked frees",
    [GOS_LOSS_STACK] = "stacks not captured",  [GOS_LOSS_TABLE] = "full tables",
    [GOS_LOSS_REPORT] = "reports not written", [GOS_LOSS_WORD] = "functions of torch not found",
};

static bool is_known(enum gos_loss loss)
{
    return (unsigned)loss < GOS_LOSS_COUNT;
}

void gos_loss_count(enum gos_loss loss)
{
    if (is_known(loss))
        atomic_fetch_add_explicit(&counts[loss], 1, memory_order_relaxed);
}

uint64_t gos_loss_get(enum gos_loss loss)
{
    return is_known(loss) ? atomic_load_explicit(&counts[loss], memory_order_relaxed) : 0;
}

const char *gos_loss_name(enum gos_loss loss)
{
    return is_known(loss) ? names[loss] : "unknown";
}

void gos_fuse_trip(const char *what)
{
    const char *whole = NULL;

    if (atomic_compare_exchange_strong(&reason, &whole, what))
        gos_log(GOS_LOG_ERROR, "switched itself off: %s; the program goes on without it", what);
}

bool gos_fuse_tripped(void)
{
    return gos_fuse_reason() != NULL;
}

const char *gos_fuse_reason(void)
{
    return atomic_load_explicit(&reason, memory_order_acquire);
}
