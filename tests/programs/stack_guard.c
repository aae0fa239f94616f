/* Threads on the smallest stacks there are, each ending at a guard page, allocate and free. */
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "host.h"

static CUcontext context;

static void *allocate(void *arg)
{
    CUdeviceptr address;

    (void)arg;
    MUST(driver.context_set(context));
    for (int i = 0; i < 3; i++) {
        MUST(driver.mem_alloc(&address, MIB));
        MUST(driver.mem_free(address));
    }
    return arg;
}

static void run_with(size_t stack_bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, stack_bytes) != 0 ||
        pthread_create(&thread, &attributes, allocate, NULL) != 0)
        exit(1);
    pthread_join(thread, NULL);
    printf("outcome: thread with %zu KiB ended\n", stack_bytes / 1024);
}

int main(int argc, char **argv)
{
    CUdevice device;
    size_t smallest = argc > 1 ? (size_t)atoi(argv[1]) * 1024 : 32 * 1024;

    open_device();
    MUST(driver.device_get(&device, 0));
    MUST(driver.primary_retain(&context, device));
    for (size_t bytes = smallest; bytes <= 128 * 1024; bytes *= 2)
        run_with(bytes);
    tell_live();
    return 0;
}
