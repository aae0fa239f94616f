/*
 * Threads by the thousand, eight at a time.  Each keeps memory until its
 * thread-specific data is destroyed, where it is freed and more is allocated.
 */
#include <pthread.h>

#include "host.h"

#define THREADS 4000
#define AT_ONCE 8

static pthread_key_t key;
static CUcontext context;

static void free_late(void *arg)
{
    CUdeviceptr *kept = arg;
    CUdeviceptr last;

    /* The driver may have forgotten the thread already. */
    MUST(driver.context_set(context));
    MUST(driver.mem_free(*kept));
    MUST(driver.mem_alloc(&last, 8192));
    MUST(driver.mem_free(last));
    free(kept);
}

static void *work(void *arg)
{
    CUdeviceptr *kept = malloc(sizeof *kept);

    if (kept == NULL)
        exit(1);
    MUST(driver.context_set(context));
    MUST(driver.mem_alloc(kept, 4096));
    if (gpuoomshim_push_tag)
        gpuoomshim_push_tag("left behind");
    pthread_setspecific(key, kept);
    return arg;
}

int main(void)
{
    pthread_t threads[AT_ONCE];
    CUdevice device;

    open_device();
    MUST(driver.device_get(&device, 0));
    MUST(driver.primary_retain(&context, device));
    pthread_key_create(&key, free_late);
    for (int i = 0; i < THREADS / AT_ONCE; i++) {
        for (int k = 0; k < AT_ONCE; k++)
            if (pthread_create(&threads[k], NULL, work, NULL) != 0)
                exit(1);
        for (int k = 0; k < AT_ONCE; k++)
            pthread_join(threads[k], NULL);
    }
    printf("outcome: %d threads ended\n", THREADS);
    tell_live();
    return 0;
}
