/*
 * A loop whose batch does not fit once: it catches the exception and goes on
 * with half of it.  What it keeps grows meanwhile, and nothing is caught twice.
 *   batch_halved [caught]    caught: it ends before that
 */
#include <cstring>
#include <new>

#include "host.h"

static size_t at_start;

static CUdeviceptr get(unsigned mib)
{
    CUdeviceptr memory;
    CUresult result = driver.mem_alloc(&memory, scaled(at_start, mib));

    outcome("batch", result);
    if (result != CUDA_SUCCESS)
        throw std::bad_alloc();
    return memory;
}

static void step(unsigned mib)
{
    get(mib);
}

int main(int count, char **words)
{
    bool is_caught = count > 1 && std::strcmp(words[1], "caught") == 0;
    bool halved = false;
    unsigned batch = 10240;

    open_device();
    at_start = free_bytes();
    for (int number = 0; number < (is_caught ? 3 : 6); number++) {
        try {
            step(batch);
        } catch (const std::bad_alloc &) {
            if (halved)
                throw;
            halved = true;
            batch /= 2;
        }
    }
    return 0;
}
