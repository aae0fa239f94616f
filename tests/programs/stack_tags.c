/*
 * One line of code allocates under several tags, and in stream order many small
 * pieces: two of three of one line, the third, four times as large, of another.
 */
#include "host.h"

#define PIECES 12000

static void allocate(size_t bytes)
{
    CUdeviceptr address;
    MUST(driver.mem_alloc(&address, bytes));
}

static void piece_of_one(void)
{
    CUdeviceptr address;
    MUST(driver.mem_alloc_async(&address, 16384, NULL));
}

static void piece_of_other(void)
{
    CUdeviceptr address;
    MUST(driver.mem_alloc_async(&address, 65536, NULL));
}

static void allocate_tagged(const char *tag)
{
    if (gpuoomshim_push_tag)
        gpuoomshim_push_tag(tag);
    allocate(3 * MIB);
    if (gpuoomshim_pop_tag)
        gpuoomshim_pop_tag();
}

int main(void)
{
    static const char *const tags[] = {"kv-cache", "weights", "kv-cache", "", "\x1b[31mred"};

    if (gpuoomshim_pop_tag)
        gpuoomshim_pop_tag();
    open_device();
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        allocate_tagged(tags[i]);
    for (int i = 0; i < PIECES; i++) {
        if (i % 3 == 2)
            piece_of_other();
        else
            piece_of_one();
    }
    snapshot(NULL);
    tell_live();
    return 0;
}
