#include "clock.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>

#include "elf_image.h"
#include "hot.h"
#include "syscall.h"

typedef int clock_gettime_fn(int clock, struct timespec *time);

static int clock_gettime_raw(int clock, struct timespec *time)
{
    return (int)gos_syscall(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
}

static clock_gettime_fn *find_in_vdso(void)
{
    uintptr_t header = getauxval(AT_SYSINFO_EHDR);
    struct gos_elf_image image;
    uintptr_t found;

    if (header == 0 || !gos_elf_image_at(header, &image))
        return NULL;
    found = gos_elf_symbol(&image, GOS_VDSO_CLOCK_GETTIME);
    return (clock_gettime_fn *)found;
}

static clock_gettime_fn *choose(void)
{
    clock_gettime_fn *found = find_in_vdso();

    return found ? found : clock_gettime_raw;
}

static GOS_READ_MOSTLY _Atomic(clock_gettime_fn *) chosen;

/* Threads that race here all find the same function. */
static __attribute__((noinline)) clock_gettime_fn *choose_once(void)
{
    clock_gettime_fn *now = choose();

    atomic_store_explicit(&chosen, now, memory_order_release);
    return now;
}

static inline struct timespec read_clock(int clock)
{
    clock_gettime_fn *now = atomic_load_explicit(&chosen, memory_order_acquire);
    struct timespec time = {0, 0};

    if (__builtin_expect(!now, 0))
        now = choose_once();
    now(clock, &time);
    return time;
}

uint64_t gos_clock_read(int clock)
{
    struct timespec time = read_clock(clock);

    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t gos_clock_read_ms(int clock)
{
    struct timespec time = read_clock(clock);

    return (uint64_t)time.tv_sec * 1000 + (uint32_t)time.tv_nsec / 1000000u;
}
