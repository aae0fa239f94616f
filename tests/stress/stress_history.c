/*
 * Threads allocate and give back, each for a site of its own, while others copy
 * the samples: each sample's device must hold what its sites hold, and no site
 * ever holds more than its thread had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdatomic.h>
#include <cmocka.h>

#include "../../src/track/history.h"

#define THREADS 6
#define HELD 64
#if defined(__SANITIZE_THREAD__)
#define STEPS 30000
#else
#define STEPS 300000
#endif
#define MIB ((uint64_t)1 << 20)

static _Atomic bool done;

static uint64_t address_of(uint64_t thread, uint64_t slot)
{
    return 0x7f0000000000 + (slot * THREADS + thread) * MIB;
}

static void *churn(void *number)
{
    uint64_t thread = (uint64_t)(uintptr_t)number;
    struct gos_allocation gone;

    for (uint64_t i = 0; i < STEPS; i++) {
        struct gos_allocation allocation = {.address = address_of(thread, i % HELD),
                                            .bytes = MIB,
                                            .kind = GOS_KIND_DEVICE,
                                            .site = (uint32_t)thread + 1};
        gos_registry_take(GOS_SPACE_ADDRESS, allocation.address, &gone);
        gos_registry_add(&allocation);
        gos_history_tick();
    }
    return NULL;
}

static uint64_t mistakes_in_copy(void)
{
    struct gos_moment moments[GOS_HISTORY_SAMPLES];
    struct gos_history_series series[THREADS + 1] = {{0}};
    uint64_t mistakes = 0;

    for (uint32_t i = 0; i <= THREADS; i++)
        series[i].site = i;
    uint32_t count = gos_history_copy(moments, series, THREADS + 1);
    for (uint32_t k = 0; k < count; k++) {
        uint64_t sum = 0;
        for (uint32_t i = 1; i <= THREADS; i++) {
            sum += series[i].live_kib[k];
            mistakes += series[i].live_kib[k] > HELD * 1024;
        }
        mistakes += sum != series[0].live_kib[k];
        mistakes += k > 0 && moments[k].allocated_count < moments[k - 1].allocated_count;
    }
    return mistakes;
}

static void *copy(void *mistakes)
{
    while (!atomic_load(&done))
        *(uint64_t *)mistakes += mistakes_in_copy();
    return NULL;
}

static void samples_are_whole_while_threads_allocate(void **state)
{
    pthread_t threads[THREADS], reader;
    uint64_t mistakes = 0;

    (void)state;
    pthread_create(&reader, NULL, copy, &mistakes);
    for (uint64_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    pthread_join(reader, NULL);
    assert_int_equal(mistakes + mistakes_in_copy(), 0);

    struct gos_moment moments[GOS_HISTORY_SAMPLES];
    assert_true(gos_history_copy(moments, NULL, 0) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_whole_while_threads_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
