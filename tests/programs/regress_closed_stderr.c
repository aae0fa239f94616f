/* Nobody reads standard error any more when memory runs out. */
#include <signal.h>
#include <unistd.h>

#include "host.h"

int main(void)
{
    CUdeviceptr refused = 0;
    int ends[2];

    signal(SIGPIPE, SIG_DFL);
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
        return 1;
    close(ends[0]);
    close(ends[1]);
    open_device();
    outcome("too much", driver.mem_alloc(&refused, (size_t)1 << 60));

    sigset_t pending;
    sigpending(&pending);
    printf("outcome: SIGPIPE pending %d\n", sigismember(&pending, SIGPIPE));
    return 0;
}
