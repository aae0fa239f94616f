/*
 * A visitor of dl_iterate_phdr, which runs under the loader's lock, waits for a
 * thread that allocates from where it never did before.
 */
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "host.h"

#define PATIENCE 20000 /* times 100 us */

static _Atomic bool is_ready, is_visiting, is_done;
static CUcontext context;

static void one_round(void)
{
    CUdeviceptr address;

    MUST(driver.mem_alloc(&address, MIB));
    MUST(driver.mem_free(address));
}

static __attribute__((noinline)) void deeper(int levels)
{
    if (levels > 0)
        deeper(levels - 1);
    else
        one_round();
    atomic_signal_fence(memory_order_seq_cst); /* the call is not the last thing here */
}

static void *allocate(void *arg)
{
    MUST(driver.context_set(context));
    one_round();
    is_ready = true;
    while (!is_visiting)
        usleep(100);
    deeper(5);
    is_done = true;
    return arg;
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)info;
    (void)bytes;
    (void)arg;
    is_visiting = true;
    for (int i = 0; i < PATIENCE && !is_done; i++)
        usleep(100);
    return 1;
}

int main(void)
{
    pthread_t thread;

    open_device();
    MUST(driver.context_get(&context));
    pthread_create(&thread, NULL, allocate, NULL);
    while (!is_ready)
        usleep(100);
    dl_iterate_phdr(visit, NULL);
    printf("outcome: the thread %s\n", is_done ? "went on" : "was stuck");
    pthread_join(thread, NULL);
    tell_live();
    return 0;
}
