#include "stderr.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "os.h"
#include "syscall.h"

#define STDERR 2

/* As the kernel counts signals: bit n - 1 is signal n. */
#define BIT(signal) (UINT64_C(1) << ((signal)-1))
static const uint64_t raised_by_writing = BIT(SIGPIPE) | BIT(SIGXFSZ);

static uint64_t change_mask(int how, uint64_t signals)
{
    uint64_t before = 0;

    gos_syscall(SYS_rt_sigprocmask, how, (long)&signals, (long)&before, sizeof before, 0, 0);
    return before;
}

static uint64_t pending(void)
{
    uint64_t signals = 0;

    gos_syscall(SYS_rt_sigpending, (long)&signals, sizeof signals, 0, 0, 0, 0);
    return signals;
}

static void absorb(uint64_t signals)
{
    struct timespec at_once = {0, 0};

    gos_syscall(SYS_rt_sigtimedwait, (long)&signals, 0, (long)&at_once, sizeof signals, 0, 0);
}

/* Both signals go to the thread that writes.  One that was pending before is the host's. */
int gos_stderr_write(const char *data, size_t bytes)
{
    uint64_t before = change_mask(SIG_BLOCK, raised_by_writing);
    uint64_t of_host = pending();
    int result = gos_os_write_all(STDERR, data, bytes);

    if (result == -EPIPE || result == -EFBIG) {
        uint64_t ours = pending() & raised_by_writing & ~of_host;
        if (ours)
            absorb(ours);
    }
    change_mask(SIG_SETMASK, before);
    return result;
}
