/*
 * A forked child starts empty, whatever the parent's other threads were doing.
 * The child checks and answers with its exit status: the number of the first
 * question that went wrong, or 0.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../src/base/memory.h"
#include "../../src/base/thread.h"
#include "../../src/track/event.h"
#include "../../src/track/graph_memory.h"
#include "../../src/track/pool.h"
#include "../../src/track/registry.h"
#include "../../src/track/vmm.h"

static struct gos_allocation device_block = {
    .address = 0x1000, .bytes = 100, .kind = GOS_KIND_DEVICE, .device = 1};
static struct gos_allocation physical = {
    .address = 5, .bytes = 100, .kind = GOS_KIND_PHYSICAL, .device = 1};
static const struct gos_home home = {1, 2};
static const struct gos_pool_info pool = {.pool = 0x9000};
static const struct gos_pending freed = {.stream = 0x5000, .context = 1, .bytes = 1, .count = 1};
static const struct gos_event event = {.what = "sync"};

static void use_everything(void)
{
    gos_registry_add(&device_block);
    gos_vmm_created(&physical);
    gos_vmm_mapped(0x7000, 100, 5, 1);
    gos_home_intern(&home);
    gos_pool_seen(&pool);
    gos_context_seen(0xc0, 1);
    gos_capture_began(0x5000, 0xc0);
    gos_pending_add(&freed);
    gos_graph_frees(0x6000, 0x1000);
    gos_event_add(&event);
}

/* In the order in which the shim does it. */
static void reset_everything(void)
{
    gos_memory_reset_after_fork();
    gos_thread_reset_after_fork();
    gos_registry_reset_after_fork();
    gos_vmm_reset_after_fork();
    gos_pool_reset_after_fork();
    gos_event_reset_after_fork();
}

static int first_thing_left(void)
{
    struct gos_allocation found;
    struct gos_pool_info info;
    struct gos_pending pending;
    struct gos_event copy;
    uint64_t a, b;
    uint32_t device;

    gos_registry_counts(&a, &b);
    if (a || b || gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &found))
        return 1;
    if (gos_registry_total(1, GOS_KIND_DEVICE).live_count || gos_registry_peak_bytes(1))
        return 2;
    if (gos_vmm_total(1).handle_count || gos_vmm_release(5, &found))
        return 3;
    if (gos_pool_find(0x9000, &info) || gos_context_device(0xc0, &device))
        return 4;
    if (gos_capture_count() || gos_graph_any() || gos_pending_list(&pending, 1))
        return 5;
    return gos_event_copy(&copy, 1, &a) ? 6 : 0;
}

/* Everything works again, and numbers start at one. */
static int first_thing_broken(void)
{
    struct gos_allocation found;
    struct gos_pending pending;

    use_everything();
    if (!gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &found) || found.sequence != 1)
        return 11;
    if (gos_vmm_total(1).mapped_bytes != 100 || gos_home_intern(&home) == GOS_HOME_UNKNOWN)
        return 12;
    if (gos_pending_list(&pending, 1) != 1 || pending.count != 1)
        return 13;
    return gos_capture_has(0x5000) ? 0 : 14;
}

static int answer_of_child(void)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        int wrong;

        reset_everything();
        wrong = first_thing_left();
        _exit(wrong ? wrong : first_thing_broken());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void child_starts_empty_and_parent_keeps_everything(void **state)
{
    struct gos_allocation found;

    (void)state;
    use_everything();
    assert_int_equal(answer_of_child(), 0);
    assert_true(gos_registry_find(GOS_SPACE_ADDRESS, 0x1000, &found));
    assert_int_equal(gos_vmm_total(1).handle_count, 1);
    assert_int_equal(gos_capture_count(), 1);
}

static void child_of_a_process_that_tracked_nothing_works(void **state)
{
    (void)state;
    reset_everything();
    assert_int_equal(answer_of_child(), 0);
}

static _Atomic bool stop;

static void *be_busy(void *arg)
{
    struct gos_allocation one = {.kind = GOS_KIND_POOL, .device = 1}, taken;
    uint64_t base = (uint64_t)(uintptr_t)arg;

    for (uint64_t i = 0; !atomic_load(&stop); i++) {
        struct gos_pending pending = {.stream = 0x8000 + i % 64, .bytes = 1, .count = 1};
        struct gos_home place = {base, i % 5000};

        one.address = base + i % 4096 * 512;
        gos_registry_add(&one);
        gos_pending_add(&pending);
        gos_pending_stream_destroyed(pending.stream);
        gos_home_intern(&place);
        gos_graph_frees(base, one.address);
        gos_graph_destroyed(base);
        gos_event_add(&event);
        if (i % 3)
            gos_registry_take(GOS_SPACE_ADDRESS, one.address, &taken);
    }
    return NULL;
}

static void child_never_waits_for_a_lock_of_a_busy_parent(void **state)
{
    pthread_t threads[3];

    (void)state;
    atomic_store(&stop, false);
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, be_busy, (void *)((i + 1) << 40));
    for (int i = 0; i < 50; i++)
        assert_int_equal(answer_of_child(), 0);
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_starts_empty_and_parent_keeps_everything),
        cmocka_unit_test(child_of_a_process_that_tracked_nothing_works),
        cmocka_unit_test(child_never_waits_for_a_lock_of_a_busy_parent),
    };

    return cmocka_run_group_tests_name("track_fork", tests, NULL, NULL);
}
