#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>

#include "loss.h"
#include "os.h"
#include "text.h"

/* Numbers are never given out twice, so a pool of short-lived threads may pass this. */
#define THREAD_MAX 65536

__thread struct gos_thread gos_thread __attribute__((tls_model("initial-exec")));

static _Atomic uint32_t last_index;
static _Atomic int tids[THREAD_MAX];

static void remember(uint32_t index, int tid)
{
    if (index < THREAD_MAX)
        atomic_store_explicit(&tids[index], tid, memory_order_relaxed);
    else
        gos_loss_count(GOS_LOSS_TABLE);
}

uint32_t gos_thread_assign_index(void)
{
    gos_thread.index = atomic_fetch_add_explicit(&last_index, 1, memory_order_relaxed) + 1;
    gos_thread.tid = gos_os.tid();
    remember(gos_thread.index, gos_thread.tid);
    return gos_thread.index;
}

int gos_thread_tid(uint32_t index)
{
    return index < THREAD_MAX ? atomic_load_explicit(&tids[index], memory_order_relaxed) : 0;
}

bool gos_thread_is_alive(int tid)
{
    char path[48];
    struct gos_text text = gos_text_on(path, sizeof path);

    gos_text_format(&text, "/proc/self/task/%d/comm", tid);
    int fd = gos_os.open(path, O_RDONLY, 0);
    if (fd >= 0)
        gos_os.close(fd);
    return fd != -ENOENT;
}

bool gos_thread_is_gone(uint32_t index)
{
    int tid = gos_thread_tid(index);

    return tid != 0 && !gos_thread_is_alive(tid);
}

static void forget_all(void)
{
    uint32_t last = atomic_exchange_explicit(&last_index, 0, memory_order_relaxed);

    for (uint32_t i = 1; i <= last && i < THREAD_MAX; i++)
        atomic_store_explicit(&tids[i], 0, memory_order_relaxed);
}

void gos_thread_reset_after_fork(void)
{
    forget_all();
    gos_thread.rank_mask = 0;
    gos_thread_assign_index();
}
