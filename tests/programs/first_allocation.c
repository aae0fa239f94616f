/*
 * One allocation, the first one, with whatever answer: a driver that does not
 * fit gives it here.
 */
#include "host.h"

int main(void)
{
    CUdeviceptr memory = 0;

    open_device();
    outcome("the first allocation", driver.mem_alloc(&memory, 64 * MIB));
    return 0;
}
