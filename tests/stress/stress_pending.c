/*
 * Threads free on streams of their own and on shared ones while others destroy
 * streams, look up contexts and pools and intern homes: no byte is lost on a
 * stream that nobody drained or destroyed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdatomic.h>
#include <cmocka.h>

#include "../../src/track/home.h"
#include "../../src/track/pool.h"

#define THREADS 6
#define STEPS 100000
#define SHARED_STREAM 0x9999

static _Atomic bool done;
static struct gos_pending list[GOS_STREAM_MAX];

static void free_on(uint64_t stream)
{
    struct gos_pending one = {.stream = stream, .context = 1, .bytes = 16, .count = 1};

    gos_pending_add(&one);
}

static void *free_in_turn(void *arg)
{
    uint64_t number = (uint64_t)(uintptr_t)arg;

    for (uint64_t i = 0; i < STEPS; i++) {
        free_on(0x100000 + number * 0x1000 + i % 20 * 64);
        free_on(SHARED_STREAM);
        free_on(2);
    }
    return NULL;
}

static void *disturb(void *mistakes)
{
    for (uint64_t i = 0; !atomic_load(&done); i++) {
        struct gos_home home = {i % 3, i % 100};
        struct gos_pool_info info = {.pool = 0x10 + i % 50, .device = 3};
        uint32_t device;

        free_on(0x50000 + i % 100 * 16);
        gos_pending_stream_destroyed(0x50000 + i % 100 * 16);
        gos_context_seen(0xc0 + i % 5, 1);
        if (gos_context_device(0xc0 + i % 3, &device))
            *(uint64_t *)mistakes += device != 1;
        gos_context_destroyed(0xc0 + i % 5);
        gos_pool_seen(&info);
        if (gos_pool_find(0x10 + i % 7, &info))
            *(uint64_t *)mistakes += info.device != 3;
        gos_pool_destroyed(0x10 + i % 50);
        *(uint64_t *)mistakes += gos_home_get(gos_home_intern(&home)).pool != i % 100;
    }
    return NULL;
}

static void check(const struct gos_pending *one)
{
    uint64_t expected = STEPS / 20;

    if (one->stream == SHARED_STREAM)
        expected = STEPS * THREADS;
    else if (one->per_thread)
        expected = STEPS;
    assert_int_equal(one->count, expected);
    assert_int_equal(one->bytes, expected * 16);
}

static void frees_are_summed_up_exactly_among_dying_handles(void **state)
{
    pthread_t threads[THREADS], disturbers[2];
    uint64_t mistakes[2] = {0, 0};

    (void)state;
    for (int i = 0; i < 2; i++)
        pthread_create(&disturbers[i], NULL, disturb, &mistakes[i]);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, free_in_turn, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    for (int i = 0; i < 2; i++)
        pthread_join(disturbers[i], NULL);
    for (uint64_t i = 0; i < 100; i++)
        gos_pending_stream_destroyed(0x50000 + i * 16);
    assert_int_equal(mistakes[0] + mistakes[1], 0);
    assert_int_equal(gos_pending_list(list, GOS_STREAM_MAX), THREADS * 20 + THREADS + 1);
    for (int i = 0; i < THREADS * 20 + THREADS + 1; i++)
        check(&list[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_are_summed_up_exactly_among_dying_handles),
    };

    return cmocka_run_group_tests_name("stress_pending", tests, NULL, NULL);
}
