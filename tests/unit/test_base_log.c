#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../src/base/log.h"
#include "../../src/base/loss.h"
#include "../../src/base/options.h"
#include "../../src/base/os.h"

static struct gos_os original;
static char last[2048];
static int writes, last_fd;

static ssize_t write_kept(int fd, const void *data, size_t bytes)
{
    assert_true(bytes < sizeof(last));
    memcpy(last, data, bytes);
    last[bytes] = '\0';
    last_fd = fd;
    writes++;
    return (ssize_t)bytes;
}

static int start(void **state)
{
    (void)state;
    original = gos_os;
    gos_os.write = write_kept;
    gos_options.log = GOS_LOG_NOTICE;
    writes = 0;
    return 0;
}

static int finish(void **state)
{
    (void)state;
    gos_os = original;
    return 0;
}

static void a_line_is_one_write_to_stderr(void **state)
{
    (void)state;
    gos_log(GOS_LOG_NOTICE, "wrote %s, %d bytes", "a.txt", 42);
    assert_string_equal(last, "gpuoomshim: wrote a.txt, 42 bytes\n");
    assert_int_equal(last_fd, STDERR_FILENO);
    assert_int_equal(writes, 1);
}

static void quieter_levels_are_kept_back(void **state)
{
    (void)state;
    gos_log(GOS_LOG_INFO, "not now");
    assert_int_equal(writes, 0);
    gos_options.log = GOS_LOG_DEBUG;
    gos_log(GOS_LOG_INFO, "now");
    assert_int_equal(writes, 1);
    gos_options.log = GOS_LOG_ERROR;
    gos_log(GOS_LOG_NOTICE, "not now");
    assert_int_equal(writes, 1);
}

static void a_line_too_long_ends_in_dots(void **state)
{
    char word[3000];

    (void)state;
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    gos_log(GOS_LOG_ERROR, "%s", word);
    assert_int_equal(writes, 1);
    assert_true(strlen(last) > 1000);
    assert_string_equal(last + strlen(last) - 6, "xx...\n");
}

static void losses_are_counted_by_kind(void **state)
{
    (void)state;
    gos_loss_count(GOS_LOSS_STACK);
    gos_loss_count(GOS_LOSS_STACK);
    assert_int_equal(gos_loss_get(GOS_LOSS_STACK), 2);
    assert_int_equal(gos_loss_get(GOS_LOSS_REPORT), 0);
    for (int i = 0; i < GOS_LOSS_COUNT; i++)
        assert_true(strlen(gos_loss_name((enum gos_loss)i)) > 0);
}

static void a_kind_that_does_not_exist_is_harmless(void **state)
{
    (void)state;
    gos_loss_count(GOS_LOSS_COUNT);
    assert_int_equal(gos_loss_get(GOS_LOSS_COUNT), 0);
    assert_string_equal(gos_loss_name(GOS_LOSS_COUNT), "unknown");
}

static void the_fuse_speaks_once_and_keeps_its_first_reason(void **state)
{
    (void)state;
    assert_false(gos_fuse_tripped());
    assert_null(gos_fuse_reason());
    gos_fuse_trip("one thing");
    gos_fuse_trip("another thing");
    assert_true(gos_fuse_tripped());
    assert_string_equal(gos_fuse_reason(), "one thing");
    assert_int_equal(writes, 1);
    assert_non_null(strstr(last, "one thing"));
}

static void after_the_cap_one_line_says_so_and_no_more_come(void **state)
{
    (void)state;
    for (int i = 0; i < GOS_LOG_CAP * 3; i++)
        gos_log(GOS_LOG_ERROR, "line %d", i);
    assert_true(writes <= GOS_LOG_CAP + 1);
    assert_string_equal(last, "gpuoomshim: further lines are left out\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
    /* In this order: the fuse and the cap are for the whole process. */
    const struct CMUnitTest tests[] = {
        TEST(a_line_is_one_write_to_stderr),
        TEST(quieter_levels_are_kept_back),
        TEST(a_line_too_long_ends_in_dots),
        TEST(losses_are_counted_by_kind),
        TEST(a_kind_that_does_not_exist_is_harmless),
        TEST(the_fuse_speaks_once_and_keeps_its_first_reason),
        TEST(after_the_cap_one_line_says_so_and_no_more_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
