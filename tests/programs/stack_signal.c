/* A signal handler allocates and frees while the thread that it interrupts does the same. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "host.h"

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    CUdeviceptr address;

    (void)number;
    if (driver.mem_alloc(&address, 4096) == CUDA_SUCCESS)
        driver.mem_free(address);
    handled++;
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    CUdeviceptr address;

    open_device();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; i < 200000 || handled < 200; i++) {
        MUST(driver.mem_alloc(&address, 4096));
        MUST(driver.mem_free(address));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("outcome: interrupted often\n");
    tell_live();
    return 0;
}
