/*
 * What we keep per thread, in static TLS (initial-exec: reading it can neither
 * allocate nor call the loader).  Nothing here owns memory, so a thread's end
 * needs no hook.
 */
#ifndef GOS_BASE_THREAD_H
#define GOS_BASE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every call reads comes first, and lies on one line. */
struct gos_thread {
    /*
     * Re-entry depth.  Above zero, a hook goes straight to the driver: the
     * call is ours (NVML, the unwinder, a probe), not the host's.
     */
    uint32_t depth;
    uint32_t index; /* 1-based small number of this thread, 0 before the first use */
    /* Block of sequence numbers handed to this thread. */
    uint64_t sequence_next;
    uint64_t sequence_end;
    int *error;         /* its errno (gos_thread_errno), NULL before the first use */
    bool is_helper;     /* made by us to flush: its failures start no recovery */
    uint32_t rank_mask; /* ranks of the locks held, with -DGOS_DEBUG */
    int tid;            /* kernel thread id, 0 before the first use */
    /* Set by the runtime layer around its forward: what the programmer wrote. */
    const char *api;
    const void *api_caller; /* return address of the runtime call */
    uint64_t turn_ns;       /* that the call which fails now waited while other threads recovered */
};

extern __thread struct gos_thread gos_thread
    __attribute__((tls_model("initial-exec"), aligned(64)));

int *gos_thread_find_errno(void);
/* Where errno is, without a call into the C library each time. */
static inline int *gos_thread_errno(void)
{
    int *error = gos_thread.error;

    return __builtin_expect(error != NULL, 1) ? error : gos_thread_find_errno();
}

uint32_t gos_thread_assign_index(void);
/* This thread's small number (1…), assigned on first use. */
static inline uint32_t gos_thread_index(void)
{
    uint32_t index = gos_thread.index;

    return __builtin_expect(index != 0, 1) ? index : gos_thread_assign_index();
}
/* Is there a thread of this process with that kernel id?  Two system calls; leaves errno alone. */
bool gos_thread_is_alive(int tid);
/* In a forked child: this thread is number 1 again. */
void gos_thread_reset_after_fork(void);

#endif
