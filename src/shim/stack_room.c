#include "stack_room.h"

#include <stdint.h>

#include "../base/os.h"
#include "../base/readable.h"

/* Measured: 56 KiB (x86-64, -O2); the rest is for the driver, which is called from there. */
#define NEEDED_BYTES ((uintptr_t)80 << 10)
#define STEP_BYTES 4096u

/* Below a stack lies a page that nobody may read, or nothing. */
bool gos_stack_has_room(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (gos_os.tid() == gos_os.pid())
        return true;
    for (uintptr_t below = 0; below < NEEDED_BYTES; below += STEP_BYTES)
        if (!gos_is_readable(here - below))
            return false;
    return true;
}
