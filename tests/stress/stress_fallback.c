/*
 * Threads add and take fallbacks, each on devices and of sizes that go
 * together; whoever sums them up must never see the size of one on the device
 * of another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdatomic.h>
#include <cmocka.h>

#include "../../src/track/fallback.h"

#define THREADS 4
#define STEPS 200000

static _Atomic unsigned running;
static _Atomic unsigned mistakes;

/* Large ones on device 1, those of one byte on device 0. */
static struct gos_fallback_memory memory(uint64_t number)
{
    bool large = number & 1;

    return (struct gos_fallback_memory){.address = 0x1000 + number,
                                        .bytes = large ? 1 << 20 : 1,
                                        .device = large,
                                        .way = GOS_FALLBACK_MANAGED};
}

static void *come_and_go(void *first)
{
    struct gos_fallback_memory one;

    for (uint64_t i = 0; i < STEPS; i++) {
        one = memory((uint64_t)(uintptr_t)first + i * THREADS * 2 + i % 2);
        if (!gos_fallback_add(&one) || !gos_fallback_take(one.address, &one))
            atomic_fetch_add(&mistakes, 1);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void sums_are_of_whole_rows(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    atomic_store(&running, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, (void *)(i * 2)), 0);
    while (atomic_load(&running) > 0) {
        struct gos_total small = gos_fallback_total(0, GOS_FALLBACK_MANAGED);
        struct gos_total large = gos_fallback_total(1, GOS_FALLBACK_MANAGED);
        if (small.live_bytes != small.live_count || large.live_bytes != large.live_count << 20)
            atomic_fetch_add(&mistakes, 1);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(mistakes, 0);
    assert_int_equal(gos_fallback_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_of_whole_rows)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
