/*
 * A signal handler ends the program, most likely while its thread is inside a
 * report.
 *   regress_exit_in_handler microseconds
 */
#include <signal.h>
#include <sys/time.h>

#include "host.h"

static void leave(int signal_number)
{
    (void)signal_number;
    exit(0);
}

int main(int count, char **words)
{
    struct itimerval after = {.it_value.tv_usec = count > 1 ? atoi(words[1]) : 30000};
    CUdeviceptr refused;

    open_device();
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &after, NULL);
    /* Each asks for more than the one before, so each is a story of its own. */
    for (size_t bytes = (size_t)1 << 40;; bytes += MIB)
        driver.mem_alloc(&refused, bytes);
}
