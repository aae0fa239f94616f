#include "peek.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "../base/os.h"
#include "../base/syscall.h"

#define PAGE_BYTES 4096u

bool gos_peek(const void *address, void *copy, size_t bytes)
{
    struct iovec to = {copy, bytes};
    struct iovec from = {(void *)(uintptr_t)address, bytes};

    return gos_syscall(SYS_process_vm_readv, gos_os.pid(), (long)&to, 1, (long)&from, 1, 0) ==
           (long)bytes;
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
