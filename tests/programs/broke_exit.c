/*
 * Frees from a destructor, after the driver has shut down.  Its answer is
 * error 4, and nobody's mistake.
 */
#include "host.h"

static CUdeviceptr kept[3];

__attribute__((destructor)) static void give_back_late(void)
{
    if (kept[0] == 0)
        return;
    outcome("late free", driver.mem_free(kept[0]));
    outcome("late free in stream order", driver.mem_free_async(kept[1], NULL));
    outcome("late allocation", driver.mem_alloc(&kept[2], MIB));
}

int main(void)
{
    open_device();
    MUST(driver.mem_alloc_async(&kept[1], MIB, NULL));
    MUST(driver.mem_alloc(&kept[0], MIB));
    return 0;
}
