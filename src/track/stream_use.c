#include "stream_use.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "../base/os.h"
#include "../base/thread.h"
#include "capture.h"
#include "pending.h"

#define NAP_NS 20000u

/* One more than the handle, since 0 is a default stream; 0: free. */
#define USES_MAX 8
static _Atomic uint64_t uses[USES_MAX];

static int claim(uint64_t stream)
{
    for (int i = 0; i < USES_MAX; i++) {
        uint64_t none = 0;

        if (atomic_compare_exchange_strong(&uses[i], &none, stream + 1))
            return i;
    }
    return -1;
}

int gos_stream_use_begin(uint64_t stream)
{
    int use = claim(stream);

    atomic_thread_fence(memory_order_seq_cst);
    if (use < 0 || (gos_pending_knows(stream) && !gos_capture_has(stream)))
        return use;
    gos_stream_use_end(use);
    return -1;
}

void gos_stream_use_end(int use)
{
    atomic_store(&uses[use], 0);
}

static bool is_used(uint64_t stream)
{
    for (int i = 0; i < USES_MAX; i++)
        if (atomic_load(&uses[i]) == stream + 1)
            return true;
    return false;
}

/* A signal handler may destroy streams too; it must not wait for its own thread. */
void gos_stream_use_wait(uint64_t stream)
{
    atomic_thread_fence(memory_order_seq_cst);
    while (gos_thread.depth == 0 && is_used(stream))
        gos_os.sleep_ns(NAP_NS);
}

void gos_stream_use_reset_after_fork(void)
{
    for (int i = 0; i < USES_MAX; i++)
        gos_stream_use_end(i);
}
