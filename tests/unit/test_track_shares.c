/* What is opened more than once is closed as often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../../src/base/loss.h"
#include "../../src/track/shares.h"

static struct gos_shares shares;

static int start_empty(void **state)
{
    (void)state;
    shares = (struct gos_shares)GOS_SHARES_INIT;
    return 0;
}

static void what_was_opened_once_is_not_shared(void **state)
{
    (void)state;
    assert_false(gos_shares_drop(&shares, 5));
}

static void each_further_opening_is_taken_back_once(void **state)
{
    (void)state;
    gos_shares_add(&shares, 5);
    gos_shares_add(&shares, 5);
    gos_shares_add(&shares, 6);
    assert_true(gos_shares_drop(&shares, 5));
    assert_true(gos_shares_drop(&shares, 5));
    assert_false(gos_shares_drop(&shares, 5));
    assert_true(gos_shares_drop(&shares, 6));
}

static void rows_are_used_again(void **state)
{
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);

    (void)state;
    for (uint64_t number = 1; number <= 10 * GOS_SHARES_MAX; number++) {
        gos_shares_add(&shares, number);
        assert_true(gos_shares_drop(&shares, number));
    }
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost);
}

static void full_table_is_counted_as_lost(void **state)
{
    uint64_t lost = gos_loss_get(GOS_LOSS_TABLE);

    (void)state;
    for (uint64_t number = 1; number <= GOS_SHARES_MAX; number++)
        gos_shares_add(&shares, number);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost);
    gos_shares_add(&shares, GOS_SHARES_MAX + 1);
    assert_int_equal(gos_loss_get(GOS_LOSS_TABLE), lost + 1);
    assert_false(gos_shares_drop(&shares, GOS_SHARES_MAX + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_opened_once_is_not_shared, start_empty),
        cmocka_unit_test_setup(each_further_opening_is_taken_back_once, start_empty),
        cmocka_unit_test_setup(rows_are_used_again, start_empty),
        cmocka_unit_test_setup(full_table_is_counted_as_lost, start_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
