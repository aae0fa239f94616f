/* Ten lines are refused, in turn, three times over. */
#include "host.h"

static size_t bytes;

#define LINE(name)                                                                                 \
    static void name(void)                                                                         \
    {                                                                                              \
        CUdeviceptr memory;                                                                        \
                                                                                                   \
        outcome(#name, driver.mem_alloc(&memory, bytes));                                          \
    }
LINE(first)
LINE(second)
LINE(third)
LINE(fourth)
LINE(fifth)
LINE(sixth)
LINE(seventh)
LINE(eighth)
LINE(ninth)
LINE(tenth)

int main(void)
{
    static void (*const lines[])(void) = {first, second,  third,  fourth, fifth,
                                          sixth, seventh, eighth, ninth,  tenth};
    CUdeviceptr rest;

    open_device();
    bytes = free_bytes() / 2;
    MUST(driver.mem_alloc(&rest, bytes + 2 * MIB));
    for (size_t i = 0; i < 30; i++)
        lines[i % 10]();
    return 0;
}
