/* An empty device and no address space: RLIMIT_AS one GiB above what is in use. */
#include <sys/resource.h>

#include "host.h"

static size_t address_space_bytes(void)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%lu", &pages) != 1)
        exit(1);
    fclose(statm);
    return (size_t)pages * 4096;
}

int main(void)
{
    CUdeviceptr refused = 0;

    open_device();
    size_t limit = address_space_bytes() + 1024 * MIB;
    struct rlimit rlimit = {limit, limit};
    if (setrlimit(RLIMIT_AS, &rlimit) != 0)
        return 1;
    expect("8 GiB with 1 GiB of address space left", driver.mem_alloc(&refused, 8192 * MIB),
           CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}
