#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "os.h"
#include "text.h"

__thread struct gos_thread gos_thread __attribute__((tls_model("initial-exec"), aligned(64)));

static _Atomic uint32_t last_index;

uint32_t gos_thread_assign_index(void)
{
    gos_thread.index = atomic_fetch_add_explicit(&last_index, 1, memory_order_relaxed) + 1;
    gos_thread.tid = gos_os.tid();
    return gos_thread.index;
}

__attribute__((cold, noinline)) int *gos_thread_find_errno(void)
{
    gos_thread.error = &errno;
    return gos_thread.error;
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

void gos_thread_reset_after_fork(void)
{
    atomic_store_explicit(&last_index, 0, memory_order_relaxed);
    gos_thread.rank_mask = 0;
    gos_thread_assign_index();
}
