/*
 * Allocation in a constructor during dlopen, while another thread allocates and
 * the constructor waits for it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "host.h"

void allocate_in_constructor(void);

static _Atomic unsigned long rounds;
static _Atomic bool done;
static CUcontext context;

static void one_round(void)
{
    CUdeviceptr address;
    MUST(driver.mem_alloc(&address, MIB));
    MUST(driver.mem_free(address));
}

static void *allocate_always(void *arg)
{
    MUST(driver.context_set(context));
    while (!done) {
        one_round();
        rounds++;
    }
    return arg;
}

/* The other thread must get on although this one holds the loader's lock. */
void allocate_in_constructor(void)
{
    unsigned long before = rounds;
    one_round();
    while (rounds < before + 100)
        usleep(100);
    one_round();
    printf("outcome: constructed\n");
}

int main(int argc, char **argv)
{
    pthread_t thread;
    CUdevice device;

    (void)argc;
    open_device();
    MUST(driver.device_get(&device, 0));
    MUST(driver.primary_retain(&context, device));
    pthread_create(&thread, NULL, allocate_always, NULL);
    for (int i = 0; i < 20; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        if (library == NULL)
            exit(1);
        dlclose(library);
    }
    done = true;
    pthread_join(thread, NULL);
    tell_live();
    return 0;
}
