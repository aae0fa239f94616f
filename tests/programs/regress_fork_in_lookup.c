/*
 * One thread looks a function of the driver up, and is held up in there by a
 * full stderr; another forks.  The child looks it up, too.  Nobody has called
 * cuInit.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static atomic_bool looked_up;

static void *look_up(void *library)
{
    if (dlsym(library, "cuMemAlloc_v2") == NULL)
        exit(1);
    looked_up = true;
    return NULL;
}

/* A pipe that takes no more stands for stderr; its other end. */
static int fill_stderr(void)
{
    static char page[4096];
    int ends[2];

    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
        exit(1);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], page, sizeof(page)) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
    close(ends[1]);
    return ends[0];
}

static int look_up_in_child(void *library)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        alarm(10);
        _exit(dlsym(library, "cuMemFree_v2") == NULL);
    }
    waitpid(child, &status, 0);
    return status;
}

int main(void)
{
    static char page[4096];
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int visible = dup(STDERR_FILENO);
    int other_end = fill_stderr();
    pthread_t thread;

    if (library == NULL || pthread_create(&thread, NULL, look_up, library) != 0)
        return 1;
    for (int i = 0; i < 300 && !looked_up; i++)
        usleep(1000);
    dprintf(visible, "shim: held_up=%d\n", !looked_up);
    printf("outcome: child ended with %d\n", look_up_in_child(library));
    fcntl(other_end, F_SETFL, O_NONBLOCK); /* all may be read before the lookup has ended */
    while (!looked_up)
        if (read(other_end, page, sizeof(page)) < 0)
            usleep(1000);
    return pthread_join(thread, NULL);
}
