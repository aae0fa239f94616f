/*
 * A stand-in for libc10.so: the functions by which torch tells what it does, in
 * the ABI of STUB_AMOUNT.  They add up what they are told, so that hosts can
 * compare it with and without the library.
 */
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace c10
{

struct Device {
    signed char type, index;
};

struct OutOfMemoryError {
};

static std::atomic<bool> profiler_throws;
static std::atomic<std::uint64_t> calls[2], sums[2];

/* The sum does not depend on the order in which threads come. */
static void add(int which, std::uint64_t a, std::uint64_t b, std::uint64_t c, Device device)
{
    std::uint64_t words[] = {a, b, c, (std::uint64_t)(device.type * 256 + device.index),
                             (std::uint64_t)errno};
    std::uint64_t hash = 1469598103934665603u;

    for (std::uint64_t word : words)
        hash = (hash ^ word) * 1099511628211u;
    calls[which]++;
    sums[which] += hash;
}

void reportMemoryUsageToProfiler(void *block, std::int64_t bytes, STUB_AMOUNT allocated,
                                 STUB_AMOUNT reserved, Device device);
void reportOutOfMemoryToProfiler(std::int64_t asked, STUB_AMOUNT allocated, STUB_AMOUNT reserved,
                                 Device device);

void reportMemoryUsageToProfiler(void *block, std::int64_t bytes, STUB_AMOUNT allocated,
                                 STUB_AMOUNT reserved, Device device)
{
    add(0, (std::uint64_t)bytes * 2 + (block != nullptr), (std::uint64_t)allocated,
        (std::uint64_t)reserved, device);
}

void reportOutOfMemoryToProfiler(std::int64_t asked, STUB_AMOUNT allocated, STUB_AMOUNT reserved,
                                 Device device)
{
    add(1, (std::uint64_t)asked, (std::uint64_t)allocated, (std::uint64_t)reserved, device);
    if (profiler_throws)
        throw 4711;
}

} // namespace c10

#include "stub_c10.h"

void stub_c10_throw(void)
{
    throw c10::OutOfMemoryError();
}

int stub_c10_try(int (*body)(void *), void *arg, int thrown)
{
    try {
        return body(arg);
    } catch (const c10::OutOfMemoryError &) {
        return thrown;
    }
}

void stub_c10_profiler_throws(int yes)
{
    c10::profiler_throws = yes != 0;
}

void stub_c10_told(int which, unsigned long long *count, unsigned long long *sum)
{
    *count = c10::calls[which];
    *sum = c10::sums[which];
}

void stub_c10_host_block(long bytes)
{
    errno = 17;
    c10::reportMemoryUsageToProfiler(&c10::calls, bytes, 3, 0, {0, -1});
}

void stub_c10_host_block_elsewhere(long bytes)
{
    errno = 18;
    c10::reportMemoryUsageToProfiler(&c10::calls, bytes, 4, 0, {0, -1});
}
