/* Threads that fail and end: what is kept of their failures must not grow with them. */
#include <pthread.h>

#include "host.h"

#define THREADS 300
#define SETTLED 50

static CUcontext context;

static void *fail(void *number)
{
    CUdeviceptr refused;

    MUST(driver.context_set(context));
    driver.mem_alloc(&refused, ((size_t)1 << 40) + (size_t)(uintptr_t)number * MIB);
    return NULL;
}

static long mapped_mib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file || fscanf(file, "%ld", &pages) != 1)
        exit(1);
    fclose(file);
    return pages / 256;
}

int main(void)
{
    long settled_mib = 0;

    open_device();
    MUST(driver.primary_retain(&context, 0));
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (i == SETTLED)
            settled_mib = mapped_mib();
        pthread_create(&thread, NULL, fail, (void *)i);
        pthread_join(thread, NULL);
    }
    long grown_mib = mapped_mib() - settled_mib;
    printf("outcome: grown by more than 100 MiB %d\n", grown_mib > 100);
    return 0;
}
