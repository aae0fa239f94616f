#include "readable.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "syscall.h"

#define NO_SUCH_ACTION (-1)
#define SIGNAL_SET_BYTES 8

/*
 * The kernel fetches the signal set before it looks at what to do with it: a
 * bad address is told apart from a bad action.  Unlike process_vm_readv this is
 * allowed everywhere, and unlike mincore it knows of protection.
 */
bool gos_is_readable(uintptr_t address)
{
    if (address == 0) /* no set at all */
        return false;
    return gos_syscall(SYS_rt_sigprocmask, NO_SUCH_ACTION, (long)address, (long)NULL,
                       SIGNAL_SET_BYTES, 0, 0) != -EFAULT;
}

/* Without a new set, only the old one is given. */
bool gos_is_writable(void *address)
{
    return gos_syscall(SYS_rt_sigprocmask, NO_SUCH_ACTION, (long)NULL, (long)address,
                       SIGNAL_SET_BYTES, 0, 0) == 0;
}
