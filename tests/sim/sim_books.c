#include "sim_books.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "sim_call.h"
#include "sim_range.h"

struct sum {
    int device;
    uint64_t bytes, count;
};

static bool is_counted(const struct sim_range *range, int device)
{
    switch (range->kind) {
    case SIM_LINEAR:
    case SIM_PIECE:
    case SIM_POOLED:
    case SIM_MANAGED:
        return range->device == device;
    case SIM_HOST:
        return device == -1;
    default:
        return false;
    }
}

static void add(const struct sim_range *range, void *argument)
{
    struct sum *sum = argument;
    if (!is_counted(range, sum->device))
        return;
    sum->bytes += range->bytes;
    sum->count++;
}

__attribute__((visibility("default"))) void gpusim_books(int device, uint64_t *bytes,
                                                         uint64_t *count)
{
    struct sum sum = {.device = device};
    pthread_mutex_lock(&sim_lock);
    sim_range_each(add, &sum);
    if (device >= 0)
        sim_vmm_count(device, &sum.bytes, &sum.count);
    pthread_mutex_unlock(&sim_lock);
    *bytes = sum.bytes;
    *count = sum.count;
}
