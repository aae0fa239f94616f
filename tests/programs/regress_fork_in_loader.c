/*
 * A thread holds the loader's lock when the process forks: in the child nobody
 * will ever release it.  The child must get its error all the same, and end.
 */
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static sem_t inside, leave;

static int stay(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    (void)info, (void)bytes, (void)unused;
    sem_post(&inside);
    sem_wait(&leave);
    return 1;
}

static void *hold_the_loader(void *unused)
{
    (void)unused;
    dl_iterate_phdr(stay, NULL);
    return NULL;
}

int main(void)
{
    CUdeviceptr memory = 0;
    pthread_t holder;
    int status = 0;

    open_device();
    MUST(driver.mem_alloc(&memory, MIB));
    if (sem_init(&inside, 0, 0) || sem_init(&leave, 0, 0) ||
        pthread_create(&holder, NULL, hold_the_loader, NULL))
        return 1;
    sem_wait(&inside);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        outcome("allocation in the child", driver.mem_alloc(&memory, MIB));
        _exit(0);
    }
    waitpid(child, &status, 0);
    sem_post(&leave);
    pthread_join(holder, NULL);
    printf("outcome: child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    MUST(driver.mem_free(memory));
    return 0;
}
