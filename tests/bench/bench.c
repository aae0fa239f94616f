/*
 * The timed loops, for bench.py to call: one batch of one variant at a time, so
 * that variants can take turns and the machine's moods hit all alike.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <gpuoomshim.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../src/base/options.h"
#include "bench_driver.h"

int bench_stack_setting(void *options, uint32_t stack, uint64_t sample_bytes);
double bench_batch(int task, int which, unsigned count, unsigned frames, unsigned stacks);
double bench_pairs_per_second(int task, int which, unsigned threads);
double bench_live_bytes(unsigned count);
double bench_report_ms(unsigned count);
double bench_survived_us(int which, void *attempt);

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The library's own settings, whose address bench.py found; the only way to change them midway. */
int bench_stack_setting(void *options, uint32_t stack, uint64_t sample_bytes)
{
    struct gos_options *set = options;

    set->stack = stack;
    set->stack_sample = sample_bytes;
    return 0;
}

/* --- one call, or a pair --------------------------------------------------------------------- */

static void must(const char *what, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "bench: %s: %d\n", what, (int)result);
    exit(1);
}

static void pair(const struct functions *f)
{
    CUdeviceptr address;
    must("cuMemAlloc", f->alloc(&address, 2u << 20));
    f->free(address);
}

static void pair_on(const struct functions *f, CUstream stream)
{
    CUdeviceptr address;
    must("cuMemAllocAsync", f->alloc_async(&address, 1u << 20, stream));
    f->free_async(address, stream);
}

static void pair_default(const struct functions *f)
{
    pair_on(f, CU_STREAM_PER_THREAD);
}

static void pair_created(const struct functions *f)
{
    pair_on(f, bench_stream);
}

static void launch(const struct functions *f)
{
    must("cuLaunchKernel", f->launch(bench_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

typedef void task(const struct functions *);
static task *const tasks[] = {pair, pair_default, pair_created, launch};

/* --- from how deep --------------------------------------------------------------------------- */

struct descent {
    task *work;
    const struct functions *functions;
    unsigned count;
    uint32_t path; /* a bit for each of the last frames: through which of the two functions */
};

/* Two functions that differ in nothing but their address. */
typedef void step(struct descent *descent, unsigned frames);
static step left, right;

static inline __attribute__((always_inline)) void go_on(struct descent *descent, unsigned frames)
{
    if (frames == 0) {
        for (unsigned i = 0; i < descent->count; i++)
            descent->work(descent->functions);
    } else if (frames <= 32 && descent->path >> (frames - 1) & 1) {
        left(descent, frames - 1);
    } else {
        right(descent, frames - 1);
    }
}

/* What follows the call keeps it from becoming a jump. */
__attribute__((noinline)) static void left(struct descent *descent, unsigned frames)
{
    go_on(descent, frames);
    __asm__ volatile("" ::"r"(1));
}

__attribute__((noinline)) static void right(struct descent *descent, unsigned frames)
{
    go_on(descent, frames);
    __asm__ volatile("" ::"r"(2));
}

/* Stacks that were never seen differ in the last frames. */
static uint32_t next_path(void)
{
    static uint32_t number = 1u << 16; /* not those that take turns */
    return ++number;
}

/* So many stacks take turns; 0: none is seen twice. */
static void run(struct descent *descent, unsigned frames, unsigned stacks, unsigned count)
{
    if (stacks == 1) {
        descent->count = count;
        left(descent, frames);
        return;
    }
    descent->count = 1;
    for (unsigned i = 0; i < count; i++) {
        descent->path = stacks ? i % stacks : next_path();
        left(descent, frames);
    }
}

/*
 * Nanoseconds per call or pair.  `frames`: wanted on the native stack, as far as
 * there are not more already; 0: as it is.  With several stacks, or new ones,
 * their own descent is in the time, of the bare variant as well.
 */
double bench_batch(int number, int which, unsigned count, unsigned frames, unsigned stacks)
{
    void *addresses[256];
    unsigned there = (unsigned)backtrace(addresses, 256);
    struct descent descent = {.work = tasks[number], .functions = &bench_functions[which]};

    bench_settle();
    uint64_t begin = now_ns();
    run(&descent, frames > there + 4 ? frames - there - 4 : 0, stacks, count);
    return (double)(now_ns() - begin) / count;
}

/* --- threads --------------------------------------------------------------------------------- */

struct pump {
    pthread_t thread;
    task *work;
    const struct functions *functions;
    uint64_t deadline_ns;
    uint64_t done;
};

static void *pump(void *argument)
{
    struct pump *pump = argument;

    if (bench_enter() != 0)
        return NULL;
    while (now_ns() < pump->deadline_ns) {
        for (unsigned i = 0; i < 100; i++)
            pump->work(pump->functions);
        pump->done += 100;
    }
    return NULL;
}

double bench_pairs_per_second(int number, int which, unsigned threads)
{
    const double seconds = 0.2;
    struct pump *pumps = calloc(threads, sizeof *pumps);
    double sum = 0;

    for (unsigned i = 0; i < threads; i++) {
        pumps[i].work = tasks[number];
        pumps[i].functions = &bench_functions[which];
        pumps[i].deadline_ns = now_ns() + (uint64_t)(seconds * 1e9);
        pthread_create(&pumps[i].thread, NULL, pump, &pumps[i]);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(pumps[i].thread, NULL);
        sum += (double)pumps[i].done;
    }
    free(pumps);
    return sum / seconds;
}

/* --- many live allocations ------------------------------------------------------------------- */

static long resident_bytes(void)
{
    long size = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");

    if (!statm || fscanf(statm, "%ld %ld", &size, &resident) != 2)
        exit(1);
    fclose(statm);
    return resident * 4096;
}

static void allocate_many(unsigned count)
{
    CUdeviceptr address;

    for (unsigned i = 0; i < count; i++)
        must("cuMemAlloc", bench_functions[GIVEN].alloc(&address, 512));
}

/* Resident memory that each of so many live allocations adds. */
double bench_live_bytes(unsigned count)
{
    long before = resident_bytes();

    allocate_many(count);
    return (double)(resident_bytes() - before) / count;
}

/* Best of five snapshot reports while so many allocations live; below 0 without the library. */
double bench_report_ms(unsigned count)
{
    double best_ms = 1e9;

    if (!gpuoomshim_snapshot)
        return -1;
    allocate_many(count);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t begin = now_ns();
        if (gpuoomshim_snapshot(NULL) != 0)
            return -1;
        double ms = (double)(now_ns() - begin) / 1e6;
        best_ms = ms < best_ms ? ms : best_ms;
    }
    return best_ms;
}

/* --- a failure that its caller survives ------------------------------------------------------- */

typedef CUresult attempt(__typeof__(&cuMemAlloc) alloc, CUdeviceptr *address, size_t bytes);

static size_t free_bytes(void)
{
    __typeof__(&cuMemGetInfo) info =
        (__typeof__(&cuMemGetInfo))dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2");
    size_t now = 0, total;

    if (!info)
        info =
            (__typeof__(&cuMemGetInfo))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemGetInfo_v2");
    must("cuMemGetInfo", info(&now, &total));
    return now;
}

/*
 * Microseconds of: an allocation that fails, the caller's freeing of a block of
 * that size, and the same allocation once more.  `attempt_by` is in a library
 * that is known to try again.
 */
double bench_survived_us(int which, void *attempt_by)
{
    enum { KEPT_BYTES = 64 << 20 };
    static CUdeviceptr kept, filler;
    attempt *try = (attempt *)attempt_by;
    const struct functions *f = &bench_functions[which];
    CUdeviceptr address;

    if (!filler) {
        must("cuMemAlloc", f->alloc(&kept, KEPT_BYTES));
        must("cuMemAlloc", f->alloc(&filler, free_bytes() & ~((size_t)KEPT_BYTES - 1)));
    }
    uint64_t begin = now_ns();
    if (try(f->alloc, &address, KEPT_BYTES) != CUDA_ERROR_OUT_OF_MEMORY)
        must("the failure that was expected", CUDA_ERROR_UNKNOWN);
    must("cuMemFree", f->free(kept));
    must("cuMemAlloc", try(f->alloc, &kept, KEPT_BYTES));
    return (double)(now_ns() - begin) / 1e3;
}
