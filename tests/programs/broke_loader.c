/*
 * A library's constructor runs under the loader's lock and waits for a thread
 * that allocates, or fails to: the shim may not need that lock.
 *   broke_loader LIBRARY      (libbroke_constructor.so)
 */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "host.h"

/* Found by the library's constructor. */
int broke_loader_wait(void);

static CUcontext context;
static sem_t asked, answered;
static CUresult results[3];

static void *allocate(void *unused)
{
    CUdeviceptr small = 0, large = 0, ordered = 0;

    (void)unused;
    MUST(driver.context_set(context));
    sem_wait(&asked);
    results[0] = driver.mem_alloc(&small, MIB);
    results[1] = driver.mem_alloc(&large, (size_t)1 << 45);
    results[2] = driver.mem_alloc_async(&ordered, MIB, NULL);
    sem_post(&answered);
    return NULL;
}

int broke_loader_wait(void)
{
    struct timespec until;

    sem_post(&asked);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    return sem_timedwait(&answered, &until);
}

int main(int count, char **words)
{
    pthread_t thread;

    if (count != 2)
        return 2;
    open_device();
    MUST(driver.primary_retain(&context, 0));
    sem_init(&asked, 0, 0);
    sem_init(&answered, 0, 0);
    pthread_create(&thread, NULL, allocate, NULL);
    void *library = dlopen(words[1], RTLD_NOW);
    int *waited = library == NULL ? NULL : (int *)dlsym(library, "broke_constructor_waited");
    if (waited == NULL || *waited != 0) {
        printf("outcome: the constructor waited in vain\n");
        return 1;
    }
    pthread_join(thread, NULL);
    for (int i = 0; i < 3; i++)
        outcome("allocation under the loader's lock", results[i]);
    tell_live();
    return 0;
}
