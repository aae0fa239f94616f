/*
 * The document on made-up diagnoses.  With GOS_REPORT_SAMPLES=DIR it also
 * leaves each shape there as NAME.json and NAME.txt, for the checks against
 * the schema and for the tests of the command.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/text.h"
#include "../../src/cli/json_file.h"
#include "../../src/cli/load.h"
#include "../../src/report/screen.h"
#include "../../src/report/utf8.h"
#include "report_shapes.h"

static struct shape shape;

static void first_screen(char buffer[4096])
{
    struct gos_text text = gos_text_on(buffer, 4096);
    gos_screen_write(&shape.document, &text);
    assert_false(text.truncated);
}

static void shape_named(const char *name)
{
    for (unsigned i = 0; shape_make(&shape, i); i++) {
        if (strcmp(shape_name(i), name) == 0)
            return;
        shape_release(&shape);
    }
    fail_msg("no shape %s", name);
}

/* --- first screen --- */

static void check_lines(const char *screen, const char *name)
{
    unsigned lines = 0;
    while (*screen) {
        char line[1024];
        size_t length = strcspn(screen, "\n");
        assert_true(length < sizeof line);
        memcpy(line, screen, length);
        line[length] = '\0';
        if (gos_utf8_columns(line) > 80)
            fail_msg("%s: too wide: %s", name, line);
        assert_int_equal(screen[length], '\n');
        screen += length + 1;
        lines++;
    }
    if (lines > 15)
        fail_msg("%s: %u lines", name, lines);
}

static void first_screen_has_at_most_fifteen_lines_of_eighty_columns(void **state)
{
    (void)state;
    char screen[4096];
    for (unsigned i = 0; shape_make(&shape, i); i++) {
        first_screen(screen);
        check_lines(screen, shape_name(i));
        shape_release(&shape);
    }
}

static void first_screen_is_clean_for_a_terminal(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("hostile");
    first_screen(screen);
    for (const char *s = screen; *s;) {
        size_t length = gos_utf8_length(s);
        assert_true(length > 0);
        assert_true(*s == '\n' || (unsigned char)*s >= ' ');
        assert_true(*s != 0x7f);
        s += length;
    }
    shape_release(&shape);
}

static void first_screen_tells_what_why_who_and_what_to_do(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("plain");
    first_screen(screen);
    assert_non_null(strstr(screen, "post-mortem"));
    assert_non_null(strstr(screen, "rank 3 of 8"));
    assert_non_null(strstr(screen, "cudaMalloc of 4.00 GiB on GPU 0, NVIDIA H200"));
    assert_non_null(strstr(screen, "exhausted-by-process (proven)"));
    assert_non_null(strstr(screen, "train.py:88 load_batch <- train.py:140 main"));
    assert_non_null(strstr(screen, "use a smaller batch"));
    assert_non_null(strstr(screen, "short by"));
    /* The package's own line stands behind the user's. */
    assert_non_null(strstr(screen, "memory.py:1012)"));
    shape_release(&shape);
}

static void memory_that_nobody_shows_is_not_said_to_be_held_by_this_process(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("plain");
    shape.diagnosis.verdict.code = GOS_VERDICT_EXHAUSTED_BY_OTHERS;
    shape.evidence.process_count = 0;
    shape.diagnosis.ledgers[0].lines[GOS_LEDGER_HIDDEN].bytes = (int64_t)100 << 30;
    first_screen(screen);
    assert_non_null(strstr(screen, "held by    nobody visible 100.00 GiB\n"));
    shape_release(&shape);
}

static void failure_told_late_says_when_it_failed(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("plain");
    shape.evidence.request.wall_ns = (uint64_t)1764471600 * 1000000000u; /* 03:00:00 */
    shape.evidence.told_wall_ns = shape.evidence.request.wall_ns + (uint64_t)754 * 1000000000u;
    first_screen(screen);
    assert_non_null(strstr(screen, "written    later, 03:12:34, of a refusal at 03:00:00"));
    char *json = shape_emit(&shape.document, GOS_FORM_JSON, NULL);
    assert_non_null(strstr(json, "\"memory_of\": \"failure\""));
    free(json);
    shape_release(&shape);
}

static void sites_that_would_read_the_same_are_told_apart(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("sampled-and-tagged");
    first_screen(screen);
    assert_non_null(strstr(screen, "5 sampled  train.py:88 load_batch [kv-cache]\n"));
    const char *second = strstr(strstr(screen, "[kv-cache]"), "train.py:88 load_batch <-");
    assert_non_null(second);
    assert_non_null(strstr(second, "train.py:140"));
    assert_null(strstr(screen, "(no stack)"));
    shape_release(&shape);
}

static void estimates_are_said_to_be_about(void **state)
{
    (void)state;
    shape_named("sampled-and-tagged");
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    char *json = shape_emit(&shape.document, GOS_FORM_JSON, NULL);
    assert_non_null(strstr(text, "1. about 24.00 GiB in 5 allocations with a stack"));
    assert_non_null(strstr(text, "4. 30.00 GiB in 5 allocations without a stack"));
    assert_non_null(strstr(text, "tag [kv-cache]"));
    assert_non_null(strstr(json, "\"tag\": \"kv-cache\""));
    assert_non_null(strstr(json, "\"estimated_live_bytes\": 25769803776"));
    free(text);
    free(json);
    shape_release(&shape);
}

static void growth_is_a_table_of_lines_and_a_series_in_json(void **state)
{
    (void)state;
    shape_named("leaking");
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    char *json = shape_emit(&shape.document, GOS_FORM_JSON, NULL);
    assert_non_null(strstr(text, "GROWTH of live memory over the last 19000 allocations"));
    assert_non_null(
        strstr(text, "0 B    57.00 GiB    .:-=+#   steady      train.py:88 load_batch"));
    assert_non_null(strstr(text, "GPU 0, all together"));
    assert_non_null(strstr(json, "{\"allocated_count\": 19000, \"freed_count\": 9500, "
                                 "\"age_ms\": 4750}"));
    assert_non_null(strstr(json, "{\"site\": 11, \"device\": 0, \"trend\": \"steady\", "
                                 "\"oldest_ms\": 0, \"live_bytes\": [0, 3221225472, "));
    assert_non_null(strstr(json, "{\"site\": 12, \"device\": 0, \"trend\": \"none\", "));
    free(text);
    free(json);
    shape_release(&shape);
}

static void growth_of_a_few_moments_is_no_table(void **state)
{
    (void)state;
    shape_named("leaking");
    shape.evidence.growth.moment_count = 11;
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    assert_null(strstr(text, "GROWTH"));
    free(text);
    shape_release(&shape);
}

static void first_screen_without_python_shows_library_and_symbol(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("native-only");
    first_screen(screen);
    assert_non_null(strstr(screen, "libcupy_core.so allocate_block"));
    assert_null(strstr(screen, "libgpuoomshim"));
    assert_null(strstr(screen, "rank"));
    shape_release(&shape);
}

/* The frame that asked, under another symbol. */
static const char *exchange_symbol(const char *symbol)
{
    struct gos_shown_frame *frame = &shape.document.stacks.stacks[1].native[2];
    const char *before = frame->symbol;
    frame->symbol = symbol;
    return before;
}

static void functions_of_cxx_are_named_as_people_write_them(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("native-only");
    const char *before = exchange_symbol("_ZN5model5Layer4growESt6vectorIiSaIiEE");
    first_screen(screen);
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    char *json = shape_emit(&shape.document, GOS_FORM_JSON, NULL);
    exchange_symbol(before);
    assert_non_null(strstr(screen, "libcupy_core.so model::Layer::grow"));
    assert_non_null(strstr(text, "model::Layer::grow+0x4d"));
    assert_non_null(strstr(json, "_ZN5model5Layer4growESt6vectorIiSaIiEE"));
    free(text);
    free(json);
    shape_release(&shape);
}

static void name_that_is_too_long_keeps_its_beginning(void **state)
{
    (void)state;
    char screen[4096];
    char name[150];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    shape_named("native-only");
    const char *before = exchange_symbol(name);
    first_screen(screen);
    exchange_symbol(before);
    const char *held = strstr(screen, "held by");
    assert_non_null(held);
    assert_non_null(strstr(held, "libcupy_core.so xxx"));
    assert_null(strstr(held, "libcupy_core.so..."));
    shape_release(&shape);
}

static void text_lists_the_build_ids_of_libraries(void **state)
{
    (void)state;
    shape_named("native-only");
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    const char *ids = strstr(text, "BUILD IDS");
    assert_non_null(ids);
    assert_non_null(strstr(ids, "  ab01ff                                    "
                                "/usr/lib/libcudart.so.13\n"));
    assert_non_null(strstr(ids, "  (none)"));
    free(text);
    shape_release(&shape);
}

static void first_screen_says_in_a_line_that_nothing_could_be_tried(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("nothing-to-try");
    first_screen(screen);
    assert_non_null(strstr(screen, "nothing that could have helped: skipped sync, trim\n"));
    assert_non_null(strstr(screen, "cuMemAllocAsync of 4.00 GiB"));
    shape_release(&shape);
}

static void first_screen_names_the_processes_that_hold_the_memory(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("by-others");
    first_screen(screen);
    const char *held = strstr(screen, "held by");
    assert_non_null(held);
    assert_non_null(strstr(held, "jupyter (pid 99) 100"));
    assert_non_null(strstr(screen, "not seen"));
    shape_release(&shape);
}

static void first_screen_leaves_out_lines_that_say_nothing(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("empty");
    first_screen(screen);
    assert_null(strstr(screen, "held by"));
    assert_null(strstr(screen, "failed"));
    assert_null(strstr(screen, "done"));
    assert_null(strstr(screen, "not seen"));
    assert_non_null(strstr(screen, "no device memory is allocated"));
    shape_release(&shape);
}

static void crowded_screen_keeps_what_matters_most(void **state)
{
    (void)state;
    char screen[4096];
    shape_named("crowded");
    first_screen(screen);
    assert_non_null(strstr(screen, "rescued"));
    assert_non_null(strstr(screen, "why "));
    assert_non_null(strstr(screen, "asked by"));
    assert_non_null(strstr(screen, "done "));
    assert_non_null(strstr(screen, "to do"));
    shape_release(&shape);
}

/* --- text --- */

static void text_hides_machinery_that_json_keeps(void **state)
{
    (void)state;
    shape_named("plain");
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    char *json = shape_emit(&shape.document, GOS_FORM_JSON, NULL);
    assert_null(strstr(text, "_PyEval_EvalFrameDefault"));
    assert_null(strstr(text, "importlib"));
    assert_null(strstr(text, "libgpuoomshim.so "));
    assert_non_null(strstr(json, "_PyEval_EvalFrameDefault"));
    assert_non_null(strstr(text, "allocate_block+0x4d"));
    free(text);
    shape.document.complete = true;
    text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    assert_non_null(strstr(text, "_PyEval_EvalFrameDefault"));
    free(text);
    free(json);
    shape_release(&shape);
}

static void ledger_in_text_has_exact_bytes(void **state)
{
    (void)state;
    shape_named("plain");
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    assert_non_null(strstr(text, "LEDGER of GPU 0"));
    assert_non_null(strstr(text, "150754820096"));
    assert_non_null(strstr(text, "12582912"));
    free(text);
    shape_release(&shape);
}

/* --- JSON --- */

static json_t *parse(const char *name, const char *json, size_t length)
{
    char path[] = "/tmp/test_report_document.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, json, length), length);
    close(fd);
    json_t *root = gos_json_read(path);
    unlink(path);
    if (!root)
        fail_msg("%s: no JSON", name);
    return root;
}

static void leave_sample(const char *name, const char *extension, const char *data, size_t length)
{
    const char *directory = getenv("GOS_REPORT_SAMPLES");
    char path[4096];
    if (!directory)
        return;
    snprintf(path, sizeof path, "%s/%s.%s", directory, name, extension);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    fclose(file);
}

/*
 * The strongest tie between the two forms: what is read back from the JSON
 * prints as exactly the text that was printed from the diagnosis itself.
 */
static void check_agreement(const char *name)
{
    static struct gos_loaded loaded;
    size_t text_length = 0;
    size_t json_length = 0;
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, &text_length);
    char *json = shape_emit(&shape.document, GOS_FORM_JSON, &json_length);
    json_t *root = parse(name, json, json_length);
    memset(&loaded, 0, sizeof loaded);
    assert_int_equal(gos_load(&loaded, root), 0);
    loaded.document.complete = shape.document.complete;
    char *again = shape_emit(&loaded.document, GOS_FORM_TEXT, NULL);
    assert_string_equal(text, again);
    if (!shape.document.complete) {
        leave_sample(name, "json", json, json_length);
        leave_sample(name, "txt", text, text_length);
    }
    gos_scratch_release(&loaded.scratch);
    json_decref(root);
    free(again);
    free(json);
    free(text);
}

static void text_from_json_equals_text_from_diagnosis(void **state)
{
    (void)state;
    for (unsigned i = 0; shape_make(&shape, i); i++) {
        check_agreement(shape_name(i));
        shape.document.complete = true;
        check_agreement(shape_name(i));
        shape_release(&shape);
    }
}

static void json_keeps_a_size_beyond_two_to_the_63(void **state)
{
    (void)state;
    shape_named("too-large");
    char *json = shape_emit(&shape.document, GOS_FORM_JSON, NULL);
    assert_non_null(strstr(json, "\"bytes\": 18446744073709547520,"));
    assert_non_null(strstr(json, "\"bytes_hex\": \"0xfffffffffffff000\""));
    assert_non_null(strstr(json, "\"bytes_signed\": -4096"));
    free(json);
    shape_release(&shape);
}

static void ledger_lines_in_json_add_up_to_the_total(void **state)
{
    (void)state;
    for (unsigned i = 0; shape_make(&shape, i); i++) {
        size_t length = 0;
        char *json = shape_emit(&shape.document, GOS_FORM_JSON, &length);
        json_t *root = parse(shape_name(i), json, length);
        json_t *device = NULL;
        size_t index = 0;
        json_array_foreach(json_object_get(root, "devices"), index, device)
        {
            json_t *line = NULL;
            size_t k = 0;
            json_int_t sum = 0;
            json_array_foreach(json_object_get(device, "ledger"), k, line)
            {
                sum += json_integer_value(json_object_get(line, "bytes"));
            }
            if (k > 0)
                assert_int_equal(sum, json_integer_value(json_object_get(device, "total_bytes")));
        }
        json_decref(root);
        free(json);
        shape_release(&shape);
    }
}

/* Sites of a kind beyond the limit are summed up, not forgotten. */
static void text_sums_up_the_sites_that_it_leaves_out(void **state)
{
    (void)state;
    static struct gos_site_use uses[50];
    shape_named("plain");
    for (size_t i = 0; i < 50; i++)
        uses[i] = (struct gos_site_use){.site = (uint32_t)(100 + i),
                                        .kind = GOS_KIND_DEVICE,
                                        .live_bytes = 1000,
                                        .live_count = 1,
                                        .largest_bytes = 1000};
    shape.evidence.uses = uses;
    shape.evidence.use_count = 50;
    char *text = shape_emit(&shape.document, GOS_FORM_TEXT, NULL);
    assert_non_null(strstr(text, "... and 30 smaller ones"));
    free(text);
    shape_release(&shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_screen_has_at_most_fifteen_lines_of_eighty_columns),
        cmocka_unit_test(first_screen_is_clean_for_a_terminal),
        cmocka_unit_test(first_screen_tells_what_why_who_and_what_to_do),
        cmocka_unit_test(memory_that_nobody_shows_is_not_said_to_be_held_by_this_process),
        cmocka_unit_test(failure_told_late_says_when_it_failed),
        cmocka_unit_test(sites_that_would_read_the_same_are_told_apart),
        cmocka_unit_test(estimates_are_said_to_be_about),
        cmocka_unit_test(growth_is_a_table_of_lines_and_a_series_in_json),
        cmocka_unit_test(growth_of_a_few_moments_is_no_table),
        cmocka_unit_test(first_screen_without_python_shows_library_and_symbol),
        cmocka_unit_test(functions_of_cxx_are_named_as_people_write_them),
        cmocka_unit_test(name_that_is_too_long_keeps_its_beginning),
        cmocka_unit_test(text_lists_the_build_ids_of_libraries),
        cmocka_unit_test(first_screen_says_in_a_line_that_nothing_could_be_tried),
        cmocka_unit_test(first_screen_names_the_processes_that_hold_the_memory),
        cmocka_unit_test(first_screen_leaves_out_lines_that_say_nothing),
        cmocka_unit_test(crowded_screen_keeps_what_matters_most),
        cmocka_unit_test(text_hides_machinery_that_json_keeps),
        cmocka_unit_test(ledger_in_text_has_exact_bytes),
        cmocka_unit_test(text_from_json_equals_text_from_diagnosis),
        cmocka_unit_test(json_keeps_a_size_beyond_two_to_the_63),
        cmocka_unit_test(ledger_lines_in_json_add_up_to_the_total),
        cmocka_unit_test(text_sums_up_the_sites_that_it_leaves_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
