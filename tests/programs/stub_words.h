/*
 * What the stand-in for torch's allocator tells, and how it refuses: in the ABI
 * of torch 2 (STUB_TORCH_2), of 1.13 (STUB_TORCH_1), else nothing and by its result.
 */
#ifndef STUB_WORDS_H
#define STUB_WORDS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "stub_c10.h"

#if defined(STUB_TORCH_2)
typedef size_t stub_amount;
#define REPORT_BLOCK _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define REPORT_REFUSAL _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#elif defined(STUB_TORCH_1)
typedef int64_t stub_amount;
#define REPORT_BLOCK _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE
#define REPORT_REFUSAL _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE
#endif

#ifdef REPORT_BLOCK

struct stub_device {
    signed char type, index;
};
#define STUB_CUDA_0 ((struct stub_device){1, 0})

void REPORT_BLOCK(void *block, int64_t bytes, stub_amount allocated, stub_amount reserved,
                  struct stub_device device);
void REPORT_REFUSAL(int64_t asked, stub_amount allocated, stub_amount reserved,
                    struct stub_device device);

static inline void tell_block(void *block, int64_t bytes, size_t allocated, size_t reserved)
{
    errno = 19;
    REPORT_BLOCK(block, bytes, (stub_amount)allocated, (stub_amount)reserved, STUB_CUDA_0);
}

static inline void tell_refusal(size_t asked, size_t allocated, size_t reserved)
{
    errno = 20;
    REPORT_REFUSAL((int64_t)asked, (stub_amount)allocated, (stub_amount)reserved, STUB_CUDA_0);
    stub_c10_throw();
}

#define try_to stub_c10_try

#else

static inline void tell_block(void *block, int64_t bytes, size_t allocated, size_t reserved)
{
    (void)block, (void)bytes, (void)allocated, (void)reserved;
}

static inline void tell_refusal(size_t asked, size_t allocated, size_t reserved)
{
    (void)asked, (void)allocated, (void)reserved;
}

static inline int try_to(int (*body)(void *), void *arg, int thrown)
{
    (void)thrown;
    return body(arg);
}

#endif
#endif
