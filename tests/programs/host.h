/*
 * What the small hosts share: a context on device 0, checks that end the
 * program with a line, sizes as shares of what is free.
 *
 * stdout carries "outcome: …" lines only, the same with and without the shim
 * except where the shim turned a failure into a success.  What the shim itself
 * says of the process goes to stderr as "shim: name=value".
 */
#ifndef HOST_H
#define HOST_H

#include <dlfcn.h>
#include <gpuoomshim.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "load_path.h"

#define MIB ((size_t)1 << 20)

/* A call without which the situation cannot be set up. */
static inline void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("outcome: %s gave %d where it must not\n", what, (int)result);
    exit(1);
}
#define MUST(call) must((call), #call)

static inline void outcome(const char *what, CUresult result)
{
    printf("outcome: %s %d\n", what, (int)result);
    fflush(stdout);
}

/* Ends the program with 1 unless the driver answered with one of the two. */
static inline void expect(const char *what, CUresult result, CUresult one, CUresult other)
{
    outcome(what, result);
    if (result != one && result != other)
        exit(1);
}

static inline void open_device(void)
{
    CUcontext context;
    CUdevice device;

    load_driver();
    if (driver.init(0) != CUDA_SUCCESS) {
        printf("outcome: no device\n");
        exit(77);
    }
    MUST(driver.device_get(&device, 0));
    MUST(driver.primary_retain(&context, device));
    MUST(driver.context_set(context));
}

static inline size_t free_bytes(void)
{
    size_t free_now, total;
    MUST(driver.mem_get_info(&free_now, &total));
    return free_now;
}

/*
 * A size in MiB of the written scenario, whose device starts with 15,872 MiB
 * free, scaled to `free_at_start` and cut to whole 2 MiB blocks.
 */
static inline size_t scaled(size_t free_at_start, unsigned mib)
{
    size_t blocks = free_at_start / (2 * MIB);
    return blocks * mib / 15872 * 2 * MIB;
}

/* The function of a library that stands for another; without it the program ends. */
static inline void *function_of(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_NOW);
    void *function = library ? dlsym(library, name) : NULL;

    if (function == NULL)
        exit(1);
    return function;
}

/* What the shim knows of device 0, when it is there. */
static inline void tell_live(void)
{
    if (gpuoomshim_live_bytes == NULL)
        return;
    fprintf(stderr, "shim: live_bytes=%" PRIu64 "\n", gpuoomshim_live_bytes(0));
    fprintf(stderr, "shim: live_count=%" PRIu64 "\n", gpuoomshim_live_count(0));
}

static inline void snapshot(const char *prefix)
{
    if (gpuoomshim_snapshot != NULL)
        fprintf(stderr, "shim: snapshot=%d\n", gpuoomshim_snapshot(prefix));
}

#endif
