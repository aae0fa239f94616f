/*
 * Threads add, take, restore and look up at random and compare each answer
 * with a model of their own; others walk all the while.  At the end the sums
 * must equal those of the models.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/track/registry.h"

#define THREADS 8
#define SLOTS 2000
#if defined(__SANITIZE_THREAD__)
#define STEPS 40000
#else
#define STEPS 200000
#endif

struct model {
    unsigned number;
    uint64_t random;
    uint64_t mistakes;
    uint64_t allocated;
    uint64_t live_bytes;
    uint64_t live_count;
    uint64_t sizes[SLOTS]; /* 0: free */
};

static struct model models[THREADS];
static _Atomic bool done;

static uint64_t next_random(struct model *model)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return model->random;
}

/* Threads' addresses lie between one another's, so that they share shards and buckets. */
static uint64_t address_of(const struct model *model, uint64_t slot)
{
    return 0x7f0000000000 + (slot * THREADS + model->number) * 512;
}

static void add(struct model *model, uint64_t slot)
{
    struct gos_allocation allocation = {.address = address_of(model, slot),
                                        .bytes = 1 + next_random(model) % (1 << 30),
                                        .kind = GOS_KIND_DEVICE,
                                        .device = (uint32_t)(slot % 4),
                                        .site = model->number};

    model->mistakes += gos_registry_add(&allocation) != 0;
    model->sizes[slot] = allocation.bytes;
    model->live_bytes += allocation.bytes;
    model->live_count++;
    model->allocated++;
}

static bool is_as_modelled(const struct model *model, uint64_t slot,
                           const struct gos_allocation *found)
{
    return found->bytes == model->sizes[slot] && found->site == model->number &&
           found->device == slot % 4 && found->address == address_of(model, slot);
}

static void take(struct model *model, uint64_t slot, bool refused)
{
    struct gos_allocation taken = {.address = 0};
    bool known = gos_registry_take(GOS_SPACE_ADDRESS, address_of(model, slot), &taken);

    model->mistakes += !known || !is_as_modelled(model, slot, &taken);
    if (refused) {
        gos_registry_restore(&taken);
        return;
    }
    model->live_bytes -= model->sizes[slot];
    model->live_count--;
    model->sizes[slot] = 0;
}

static void look(struct model *model, uint64_t slot)
{
    struct gos_allocation found;
    bool known = gos_registry_find(GOS_SPACE_ADDRESS, address_of(model, slot), &found);

    model->mistakes += known != (model->sizes[slot] != 0);
    model->mistakes += known && !is_as_modelled(model, slot, &found);
}

static void *storm(void *arg)
{
    struct model *model = arg;

    for (int i = 0; i < STEPS; i++) {
        uint64_t slot = next_random(model) % SLOTS;

        if (next_random(model) % 4 == 0)
            look(model, slot);
        else if (model->sizes[slot])
            take(model, slot, next_random(model) % 4 == 0);
        else
            add(model, slot);
    }
    return NULL;
}

struct sums {
    uint64_t bytes;
    uint64_t count;
};

static void sum_up(const struct gos_allocation *allocation, void *arg)
{
    struct sums *sums = arg;

    sums->bytes += allocation->bytes;
    sums->count++;
}

static void *walk(void *mistakes)
{
    while (!atomic_load(&done)) {
        struct sums sums = {0, 0};

        gos_registry_walk(sum_up, &sums);
        *(uint64_t *)mistakes += sums.count > THREADS * SLOTS;
        *(uint64_t *)mistakes += gos_registry_peak_bytes(0) > (UINT64_C(1) << 30) * THREADS * SLOTS;
        /* All addresses lie in one shard: who walks without a pause leaves it to nobody. */
        usleep(500);
    }
    return NULL;
}

static void run_storm(uint64_t *walker_mistakes)
{
    pthread_t threads[THREADS], walker;

    pthread_create(&walker, NULL, walk, walker_mistakes);
    for (unsigned i = 0; i < THREADS; i++) {
        models[i].number = i;
        models[i].random = 88172645463325252u + i;
        pthread_create(&threads[i], NULL, storm, &models[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    pthread_join(walker, NULL);
}

static struct gos_total total_of_devices(void)
{
    struct gos_total total = {0, 0};

    for (uint32_t device = 0; device < 4; device++) {
        struct gos_total one = gos_registry_total(device, GOS_KIND_DEVICE);

        total.live_bytes += one.live_bytes;
        total.live_count += one.live_count;
    }
    return total;
}

static void every_answer_and_all_sums_equal_the_model(void **state)
{
    uint64_t mistakes = 0, bytes = 0, count = 0, born = 0, allocated, freed;
    uint64_t untracked = gos_loss_get(GOS_LOSS_UNTRACKED);
    struct sums walked = {0, 0};

    (void)state;
    run_storm(&mistakes);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(models[i].mistakes, 0);
        bytes += models[i].live_bytes;
        count += models[i].live_count;
        born += models[i].allocated;
    }
    gos_registry_walk(sum_up, &walked);
    gos_registry_counts(&allocated, &freed);
    assert_int_equal(mistakes, 0);
    assert_int_equal(walked.bytes, bytes);
    assert_int_equal(walked.count, count);
    assert_int_equal(total_of_devices().live_bytes, bytes);
    assert_int_equal(total_of_devices().live_count, count);
    assert_int_equal(allocated, born);
    assert_int_equal(freed, born - count);
    assert_int_equal(gos_loss_get(GOS_LOSS_UNTRACKED), untracked);
}

/* --- the same few addresses from all threads: each add is taken once or replaced once --- */

static _Atomic uint64_t taken_count;

static void *quarrel(void *arg)
{
    struct model *model = arg;
    struct gos_allocation one = {.bytes = 1, .kind = GOS_KIND_POOL, .device = 9}, taken;

    for (int i = 0; i < STEPS / 4; i++) {
        one.address = 0x1000 + next_random(model) % 7 * 512;
        gos_registry_add(&one);
        one.address = 0x1000 + next_random(model) % 7 * 512;
        if (gos_registry_take(GOS_SPACE_ADDRESS, one.address, &taken))
            atomic_fetch_add(&taken_count, 1);
    }
    return NULL;
}

static void contended_addresses_are_taken_or_replaced_exactly_once(void **state)
{
    uint64_t replaced = gos_loss_get(GOS_LOSS_UNTRACKED);
    pthread_t threads[THREADS];

    (void)state;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, quarrel, &models[i]);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    replaced = gos_loss_get(GOS_LOSS_UNTRACKED) - replaced;
    assert_int_equal(taken_count + replaced + gos_registry_total(9, GOS_KIND_POOL).live_count,
                     (uint64_t)THREADS * (STEPS / 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_and_all_sums_equal_the_model),
        cmocka_unit_test(contended_addresses_are_taken_or_replaced_exactly_once),
    };

    return cmocka_run_group_tests_name("stress_registry", tests, NULL, NULL);
}
