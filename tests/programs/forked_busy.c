/*
 * Threads allocate and free while the process forks, so that some child begins
 * with a thread caught inside the library.  Each child must get its error and
 * end; one that hangs is ended by its alarm.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define THREADS 4
#define CHILDREN 20

static atomic_bool done;
static CUcontext context;

static void *churn(void *arg)
{
    (void)arg;
    MUST(driver.context_set(context));
    while (!atomic_load(&done)) {
        CUdeviceptr memory;
        MUST(driver.mem_alloc(&memory, MIB));
        MUST(driver.mem_free(memory));
    }
    return NULL;
}

static int run_child(void)
{
    CUdeviceptr memory = 0;
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        alarm(30);
        CUresult result = driver.mem_alloc(&memory, MIB);
        _exit(result == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void)
{
    pthread_t threads[THREADS];
    int bad = 0;

    open_device();
    MUST(driver.primary_retain(&context, 0));
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, churn, NULL) != 0)
            return 1;
    for (int i = 0; i < CHILDREN; i++)
        bad += run_child() != 0;
    atomic_store(&done, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("outcome: children that did not get their error %d\n", bad);
    return bad;
}
