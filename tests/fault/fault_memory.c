/* Metadata memory that cannot be had: records are lost and counted, nothing worse. */
#include "nth_call.h"

#include "../../src/base/loss.h"
#include "../../src/base/memory.h"
#include "../../src/base/os.h"
#include "../../src/track/graph_memory.h"
#include "../../src/track/registry.h"
#include "../../src/track/site.h"

static void *(*real_map)(size_t);

static void *map_or_fail(size_t bytes)
{
    return fails_now() ? NULL : real_map(bytes);
}

#define RECORDS 20000u

static struct gos_allocation record(uint32_t i)
{
    struct gos_allocation allocation = {.address = 0x7f0000000000u + (uint64_t)i * 4096,
                                        .bytes = 4096,
                                        .kind = GOS_KIND_DEVICE,
                                        .device = 0};
    return allocation;
}

/* Every record that was taken in is found and taken out; every other one is counted. */
static const char *fill_and_empty(void *unused)
{
    static bool added[RECORDS];
    struct gos_allocation taken;
    uint64_t lost = 0;

    (void)unused;
    real_map = gos_os.map;
    gos_os.map = map_or_fail;
    for (uint32_t i = 0; i < RECORDS; i++) {
        struct gos_allocation allocation = record(i);
        added[i] = gos_registry_add(&allocation) == 0;
        lost += !added[i];
    }
    if (gos_loss_get(GOS_LOSS_MEMORY) < lost)
        return "a lost record was not counted";
    if (gos_registry_total(0, GOS_KIND_DEVICE).live_count != RECORDS - lost)
        return "the total counts what is not there";
    for (uint32_t i = 0; i < RECORDS; i++) {
        if (gos_registry_take(GOS_SPACE_ADDRESS, record(i).address, &taken) != added[i])
            return "a record was found that was not added, or the other way round";
    }
    return gos_registry_total(0, GOS_KIND_DEVICE).live_count == 0 ? NULL : "records remain";
}

static void registry_loses_records_and_says_so_when_memory_runs_out(void **state)
{
    (void)state;
    fail_each_call(fill_and_empty, NULL);
}

#define GRAPHS 2000u

/* A node without memory for it is counted; the others come with the launch and go with the graph.
 */
static const char *launch_graphs(void *unused)
{
    (void)unused;
    real_map = gos_os.map;
    gos_os.map = map_or_fail;
    for (uint32_t i = 1; i <= GRAPHS; i++) {
        struct gos_allocation allocation = record(i);
        allocation.kind = GOS_KIND_GRAPH;
        gos_graph_allocates(i, &allocation);
        gos_graph_instantiated(i, GRAPHS + i);
        gos_graph_launched(GRAPHS + i, 0);
    }
    if (gos_registry_total(0, GOS_KIND_GRAPH).live_count + gos_loss_get(GOS_LOSS_MEMORY) < GRAPHS)
        return "a lost node was not counted";
    for (uint32_t i = 1; i <= GRAPHS; i++) {
        gos_graph_destroyed(i);
        gos_graph_exec_destroyed(GRAPHS + i);
    }
    return gos_graph_any() ? "graphs remain" : NULL;
}

static void graphs_lose_nodes_and_say_so_when_memory_runs_out(void **state)
{
    (void)state;
    fail_each_call(launch_graphs, NULL);
}

static const char *intern_sites(void *unused)
{
    struct gos_stack stack = {.native_count = 8};

    (void)unused;
    real_map = gos_os.map;
    gos_os.map = map_or_fail;
    for (uint32_t i = 0; i < 20000; i++) {
        for (uint32_t frame = 0; frame < stack.native_count; frame++)
            stack.native[frame] = (uintptr_t)0x1000 + i * 64 + frame;
        uint32_t first = gos_site_intern(&stack);
        const struct gos_site *site = gos_site_get(first);
        if (first != 0 && (site == NULL || site->native_count != 8))
            return "an interned site is not whole";
        if (first != 0 && gos_site_intern(&stack) != first)
            return "the same stack has two numbers";
    }
    return NULL;
}

static void sites_become_zero_when_memory_runs_out(void **state)
{
    (void)state;
    fail_each_call(intern_sites, NULL);
}

static const char *scratch_text(void *unused)
{
    struct gos_scratch scratch = {0};

    (void)unused;
    real_map = gos_os.map;
    gos_os.map = map_or_fail;
    for (unsigned i = 0; i < 2000; i++) {
        char *memory = gos_scratch_alloc(&scratch, 1000);
        if (memory != NULL && memory[999] != 0)
            return "scratch memory is not zeroed";
    }
    gos_scratch_release(&scratch);
    return NULL;
}

static void scratch_memory_goes_on_after_a_failure(void **state)
{
    (void)state;
    fail_each_call(scratch_text, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry_loses_records_and_says_so_when_memory_runs_out),
        cmocka_unit_test(graphs_lose_nodes_and_say_so_when_memory_runs_out),
        cmocka_unit_test(sites_become_zero_when_memory_runs_out),
        cmocka_unit_test(scratch_memory_goes_on_after_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
