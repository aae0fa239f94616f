#include "peek.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../base/os.h"
#include "../base/syscall.h"

#define PAGE_BYTES 4096u

static long call3(long number, long a, long b, long c)
{
    return gos_syscall(number, a, b, c, 0, 0, 0);
}

static long peek_directly(const void *address, void *copy, size_t bytes)
{
    struct iovec to = {copy, bytes};
    struct iovec from = {(void *)(uintptr_t)address, bytes};

    return gos_syscall(SYS_process_vm_readv, gos_os.pid(), (long)&to, 1, (long)&from, 1, 0);
}

/* Writing a bad address into a pipe is an error, too.  A page fits in, so nothing waits. */
static long peek_through_pipe(const void *address, void *copy, size_t bytes)
{
    int ends[2] = {-1, -1};
    long result = call3(SYS_pipe2, (long)ends, O_CLOEXEC, 0);

    if (result != 0)
        return result;
    result = call3(SYS_write, ends[1], (long)address, (long)bytes);
    if (result > 0)
        result = call3(SYS_read, ends[0], (long)copy, result);
    call3(SYS_close, ends[0], 0, 0);
    call3(SYS_close, ends[1], 0, 0);
    return result;
}

/* Containers may forbid the direct way, and some emulated kernels lack it. */
bool gos_peek(const void *address, void *copy, size_t bytes)
{
    long result = peek_directly(address, copy, bytes);

    if (result == -ENOSYS || result == -EPERM)
        result = peek_through_pipe(address, copy, bytes);
    return result == (long)bytes;
}

/* Page by page, because the text may end just before an unmapped one. */
bool gos_peek_text(const char *address, char *copy, size_t bytes)
{
    size_t done = 0;

    while (done < bytes - 1) {
        size_t page_left = PAGE_BYTES - ((uintptr_t)address + done) % PAGE_BYTES;
        size_t part = page_left < bytes - 1 - done ? page_left : bytes - 1 - done;

        if (!gos_peek(address + done, copy + done, part))
            return false;
        if (memchr(copy + done, '\0', part) != NULL)
            return true;
        done += part;
    }
    copy[done] = '\0';
    return true;
}
