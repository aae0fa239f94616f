/*
 * Managed memory, a quarter of what is free, written by the host and given back.
 *   own_managed FOLDER for snapshots
 */
#include <string.h>

#include "own.h"

int main(int count, char **words)
{
    const char *folder = count > 1 ? words[1] : ".";
    CUdeviceptr memory = 0, beside = 0;

    open_device();
    size_t bytes = free_bytes() / 4;
    bytes = bytes > 256 * MIB ? 256 * MIB : bytes;
    MUST(driver.mem_alloc(&beside, 3 * MIB));
    outcome("managed", driver.mem_alloc_managed(&memory, bytes, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)memory, 7, bytes);
    tell_books("written", 0, bytes + 3 * MIB);
    tell_kind(folder, "written", "managed", bytes);
    outcome("free", driver.mem_free(memory));
    tell_books("freed", 0, 3 * MIB);
    tell_kind(folder, "freed", "managed", 0);
    MUST(driver.mem_free(beside));
    return 0;
}
