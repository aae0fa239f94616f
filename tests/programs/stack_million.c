/*
 * A million allocations from stacks of every depth and frame size, so that some
 * look like others: recursion, frames of variable size, two callers of each.
 */
#include <alloca.h>
#include <string.h>

#include "host.h"

static uint64_t random_state = 88172645463325252u;

static unsigned below(unsigned limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % limit);
}

static void one_round(void)
{
    CUdeviceptr address;
    MUST(driver.mem_alloc(&address, 4096));
    MUST(driver.mem_free(address));
}

static void wander(unsigned depth);

static void with_room(unsigned depth)
{
    size_t bytes = 16 + 16 * below(4);
    volatile char *room = alloca(bytes);
    room[0] = 1;
    wander(depth);
    room[bytes - 1] = 1;
}

static void plainly(unsigned depth)
{
    volatile unsigned room[12] = {1};
    wander(depth - room[1]);
}

static void wander(unsigned depth)
{
    if (depth == 0)
        one_round();
    else if (below(2))
        with_room(depth - 1);
    else
        plainly(depth - 1);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000000;
    CUdeviceptr kept;

    open_device();
    for (long i = 0; i < rounds; i++)
        wander(below(5));
    MUST(driver.mem_alloc(&kept, MIB));
    snapshot(NULL);
    printf("outcome: done\n");
    return 0;
}
