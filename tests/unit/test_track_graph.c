/* Memory nodes of graphs: on the books from a launch until a free, and gone with their graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/track/graph_memory.h"

enum { GRAPH = 0x6000, OTHER_GRAPH = 0x6100, EXEC = 0x7000, OTHER_EXEC = 0x7100 };

static const struct gos_allocation first = {
    .address = 0x10000, .bytes = 100, .kind = GOS_KIND_GRAPH, .device = 1, .site = 7};
static const struct gos_allocation second = {
    .address = 0x20000, .bytes = 200, .kind = GOS_KIND_GRAPH, .device = 1, .site = 8};

static int start_empty(void **state)
{
    (void)state;
    gos_registry_reset_after_fork();
    gos_graph_reset_after_fork();
    return 0;
}

static uint64_t live_bytes(void)
{
    return gos_registry_total(1, GOS_KIND_GRAPH).live_bytes;
}

static void free_outside(const struct gos_allocation *allocation)
{
    struct gos_allocation taken;

    assert_true(gos_registry_take(GOS_SPACE_ADDRESS, allocation->address, &taken));
}

static void memory_is_there_from_each_launch_to_its_free(void **state)
{
    struct gos_allocation found;

    (void)state;
    gos_graph_allocates(GRAPH, &first);
    gos_graph_instantiated(GRAPH, EXEC);
    assert_int_equal(live_bytes(), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(gos_graph_launched(EXEC, 5));
        assert_int_equal(live_bytes(), 100);
        assert_true(gos_registry_find(GOS_SPACE_ADDRESS, first.address, &found));
        assert_int_equal(found.site, 7);
        assert_int_equal(found.home, 5);
        free_outside(&first);
    }
    assert_int_equal(live_bytes(), 0);
}

static void launch_that_frees_and_allocates_anew_loses_no_record(void **state)
{
    uint64_t untracked = gos_loss_get(GOS_LOSS_UNTRACKED);

    (void)state;
    gos_graph_allocates(GRAPH, &first);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_graph_launched(EXEC, 0);
    gos_graph_launched(EXEC, 0);
    assert_int_equal(live_bytes(), 100);
    assert_int_equal(gos_loss_get(GOS_LOSS_UNTRACKED), untracked);
}

static void what_a_graph_frees_itself_is_not_left(void **state)
{
    (void)state;
    gos_graph_allocates(GRAPH, &first);
    gos_graph_allocates(GRAPH, &second);
    gos_graph_frees(GRAPH, first.address);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_graph_launched(EXEC, 0);
    assert_int_equal(live_bytes(), 200);
}

static void another_graph_frees_when_it_is_launched(void **state)
{
    (void)state;
    gos_graph_allocates(GRAPH, &first);
    gos_graph_frees(OTHER_GRAPH, first.address);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_graph_instantiated(OTHER_GRAPH, OTHER_EXEC);
    gos_graph_launched(EXEC, 0);
    assert_int_equal(live_bytes(), 100);
    gos_graph_launched(OTHER_EXEC, 0);
    assert_int_equal(live_bytes(), 0);
}

static void memory_of_another_kind_at_the_address_stays(void **state)
{
    struct gos_allocation device = {
        .address = first.address, .bytes = 1, .kind = GOS_KIND_DEVICE, .device = 1};

    (void)state;
    gos_graph_frees(GRAPH, first.address);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_registry_add(&device);
    gos_graph_launched(EXEC, 0);
    free_outside(&device);
}

static void node_that_comes_after_the_instantiation_is_not_launched(void **state)
{
    (void)state;
    gos_graph_allocates(GRAPH, &first);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_graph_allocates(GRAPH, &second);
    gos_graph_instantiated(GRAPH, OTHER_EXEC);
    gos_graph_launched(EXEC, 0);
    assert_int_equal(live_bytes(), 100);
    gos_graph_launched(OTHER_EXEC, 0);
    assert_int_equal(live_bytes(), 300);
}

static void nodes_go_with_the_graph_and_what_was_made_of_it(void **state)
{
    (void)state;
    gos_graph_allocates(GRAPH, &first);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_graph_destroyed(GRAPH);
    assert_true(gos_graph_any());
    gos_graph_launched(EXEC, 0);
    assert_int_equal(live_bytes(), 100);
    gos_graph_exec_destroyed(EXEC);
    assert_false(gos_graph_any());
    assert_false(gos_graph_launched(EXEC, 0));
    assert_int_equal(live_bytes(), 100); /* until its own free */
}

static void graph_with_the_number_of_one_that_is_gone_is_another(void **state)
{
    (void)state;
    gos_graph_allocates(GRAPH, &first);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_graph_destroyed(GRAPH);
    gos_graph_allocates(GRAPH, &second);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_graph_launched(EXEC, 0);
    assert_int_equal(live_bytes(), 200);
}

static void what_was_never_seen_is_ignored(void **state)
{
    (void)state;
    gos_graph_destroyed(GRAPH);
    gos_graph_instantiated(GRAPH, EXEC);
    gos_graph_exec_destroyed(EXEC);
    gos_graph_allocates(GRAPH, &first);
    gos_graph_instantiated(OTHER_GRAPH, EXEC);
    assert_false(gos_graph_launched(EXEC, 0));
    gos_graph_destroyed(0);
    assert_int_equal(live_bytes(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start_empty)
    const struct CMUnitTest tests[] = {
        TEST(memory_is_there_from_each_launch_to_its_free),
        TEST(launch_that_frees_and_allocates_anew_loses_no_record),
        TEST(what_a_graph_frees_itself_is_not_left),
        TEST(another_graph_frees_when_it_is_launched),
        TEST(memory_of_another_kind_at_the_address_stays),
        TEST(node_that_comes_after_the_instantiation_is_not_launched),
        TEST(nodes_go_with_the_graph_and_what_was_made_of_it),
        TEST(graph_with_the_number_of_one_that_is_gone_is_another),
        TEST(what_was_never_seen_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
