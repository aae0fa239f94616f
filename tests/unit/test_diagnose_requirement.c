/* The driver that a CUDA release needs, and files that do not fit together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/diagnose/requirement.h"
#include "diagnose_fixture.h"

#define LIBCUDA "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.03"
#define NVML "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.03"
#define OLD_NVML "/opt/image/libnvidia-ml.so.535.104.05"
#define STUB "/usr/local/cuda/lib64/stubs/libcuda.so.13.0"
#define COMPAT "/usr/local/cuda/compat/libcuda.so.580.95.05"

static void each_release_needs_its_driver(void **state)
{
    (void)state;
    assert_string_equal(gos_requirement_driver("13.0.96"), "580");
    assert_string_equal(gos_requirement_driver("13"), "580");
    assert_string_equal(gos_requirement_driver("12.8.90"), "525.60.13");
    assert_string_equal(gos_requirement_driver("11.0"), "450.80.02");
    assert_string_equal(gos_requirement_driver("10.2.89"), "440.33");
    assert_string_equal(gos_requirement_driver("10.1"), "418.39");
    assert_string_equal(gos_requirement_driver("10.0.130"), "410.48");
    assert_null(gos_requirement_driver("9.2"));
    assert_null(gos_requirement_driver(""));
    assert_null(gos_requirement_driver("unknown"));
}

static void versions_are_compared_number_by_number(void **state)
{
    (void)state;
    assert_true(gos_requirement_is_older("525.60.12", "525.60.13"));
    assert_true(gos_requirement_is_older("99.1", "525.60.13"));
    assert_false(gos_requirement_is_older("525.60.13", "525.60.13"));
    assert_false(gos_requirement_is_older("580", "580"));
    assert_true(gos_requirement_is_older("579.99", "580"));
    assert_false(gos_requirement_is_older("580.65.06", "580"));
    assert_false(gos_requirement_is_older("", "580"));
}

static const struct {
    struct scene scene;
    const char *says; /* in the one line; NULL: nothing is wrong */
    const char *path; /* is named there */
} worlds[] = {
    {{"all of one driver", .libcuda = LIBCUDA, .nvml = NVML, .kernel = "580.159.03",
      .cudart = "13.0.96", .driver_version = 13000, .torch_cuda = "13.0"},
     NULL,
     NULL},
    {{"libcuda of another driver than the kernel module", .libcuda = LIBCUDA,
      .kernel = "575.57.08"},
     "the kernel module 575.57.08",
     LIBCUDA},
    {{"NVML of another driver", .libcuda = LIBCUDA, .nvml = OLD_NVML, .kernel = "580.159.03"},
     "different drivers",
     OLD_NVML},
    {{"the toolkit's stub", .libcuda = STUB}, "stub", STUB},
    {{"a runtime that is too new", .libcuda = LIBCUDA, .kernel = "580.159.03", .cudart = "14.0.1",
      .driver_version = 13000},
     "libcudart.so.13 14.0.1",
     "/opt/cuda/lib/libcudart.so.13"},
    {{"a runtime whose file alone tells its release", .cudart = "", .driver_version = 12080},
     "at least 580",
     "/opt/cuda/lib/libcudart.so.13"},
    {{"the table, where the driver does not answer", .kernel = "535.104.05", .cudart = "13.0.96"},
     "the driver is 535.104.05",
     "libcudart.so.13"},
    {{"the table allows an older minor release", .kernel = "525.60.13", .cudart = "12.9.1"},
     NULL,
     NULL},
    {{"one number below the table", .kernel = "525.60.12", .cudart = "12.9.1"},
     "at least 525.60.13",
     "libcudart.so.13"},
    {{"torch is for a newer CUDA", .torch_cuda = "13.0", .driver_version = 12080},
     "torch is for CUDA 13.0",
     "libtorch_cuda.so"},
    {{"a compat package serves a newer release", .libcuda = COMPAT, .nvml = OLD_NVML,
      .kernel = "535.104.05", .cudart = "13.0.96", .driver_version = 13000},
     NULL,
     NULL},
    {{"a compat package where the driver does not answer", .libcuda = COMPAT,
      .kernel = "535.104.05", .cudart = "13.0.96"},
     NULL,
     NULL},
    {{"a library that is only called .1", .libcuda = "/x/libcuda.so.1", .kernel = "580.159.03"},
     NULL,
     NULL},
};

static void what_does_not_fit_is_said_with_its_path_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        static struct gos_evidence evidence;
        static struct gos_diagnosis diagnosis;
        scene_evidence(&worlds[i].scene, &evidence);
        gos_diagnose(&evidence, &diagnosis);
        size_t expected = worlds[i].says ? 1 : 0;
        const char *line = diagnosis.mismatch_count ? diagnosis.mismatches[0].line : "";
        if (diagnosis.mismatch_count != expected ||
            (expected && (!strstr(line, worlds[i].says) || !strstr(line, worlds[i].path))))
            fail_msg("%s: %zu lines, \"%s\"", worlds[i].scene.name, diagnosis.mismatch_count, line);
        if (expected)
            assert_true(diagnosis.mismatches[0].advice[0] != '\0');
        gos_scratch_release(&evidence.scratch);
    }
}

static void nobody_is_told_to_reinstall_everything(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
        static struct gos_evidence evidence;
        static struct gos_diagnosis diagnosis;
        struct scene scene = worlds[i].scene;
        scene.result = 803;
        scene_evidence(&scene, &evidence);
        gos_diagnose(&evidence, &diagnosis);
        assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_DRIVER_OR_CONTEXT);
        assert_true(diagnosis.verdict.advice_count > 0);
        assert_false(verdict_advises(&diagnosis.verdict, "einstall"));
        gos_scratch_release(&evidence.scratch);
    }
}

/* --- one library from two places --- */

#define ONE "/opt/one/"
#define TWO "/opt/two/"

static const struct {
    struct gos_version loaded[3];
    const char *says; /* NULL: nothing is wrong */
} pairs[] = {
    {{{"libcudnn.so.9.1.0", "9.1.0", ONE "libcudnn.so.9.1.0"},
      {"libcudnn.so.8.9.7", "8.9.7", TWO "libcudnn.so.8.9.7"}},
     "cuDNN is loaded from two places: 9.1.0 (" ONE "libcudnn.so.9.1.0), 8.9.7 (" TWO
     "libcudnn.so.8.9.7)"},
    {{{"libcudnn.so.9", "9.1.0", ONE "libcudnn.so.9"},
      {"libcudnn_graph.so.9", "9.1.0", ONE "libcudnn_graph.so.9"},
      {"libcudnn_ops.so.9", "9.10.2", TWO "libcudnn_ops.so.9"}},
     "libcudnn_ops.so.9"},
    {{{"libnccl.so.2", "2.28.3", ONE "libnccl.so.2"},
      {"libnccl.so.2", "2.18.1", ONE "libnccl.so.2.18.1"}},
     "NCCL is loaded"},
    {{{"libnccl.so.2", "", ONE "libnccl.so.2"}, {"libnccl.so.2", "", TWO "libnccl.so.2"}},
     "NCCL is loaded from two places: 2 (" ONE "libnccl.so.2), 2 (" TWO "libnccl.so.2)"},
    {{{"libcublas.so.12", "12.8.4", ONE "libcublas.so.12"},
      {"libcublasLt.so.12", "12.4.5", TWO "libcublasLt.so.12"}},
     "cuBLAS is loaded"},
    {{{"libcublas.so.12", "12.8.4.1", ONE "libcublas.so.12"},
      {"libcublasLt.so.12", "12", ONE "libcublasLt.so.12"}},
     NULL},
    {{{"libnccl.so.2", "2.28.3", ONE "libnccl.so.2"},
      {"libnccl.so.2", "2.28.3", TWO "libnccl.so.2"}},
     NULL},
    {{{"libcudnn.so.9", "9.1.0", ONE "libcudnn.so.9"},
      {"libnccl.so.2", "2.28.3", TWO "libnccl.so.2"}},
     NULL},
};

/* It is told, and is no reason to suspect the driver. */
static void one_library_from_two_places_is_told_with_both_paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        static struct gos_evidence evidence;
        static struct gos_diagnosis diagnosis;
        struct gos_version loaded[3];
        struct scene scene = {.ask = MIB, .by = SITE_APP, .first = true};
        scene_evidence(&scene, &evidence);
        memcpy(loaded, pairs[i].loaded, sizeof(loaded));
        evidence.versions = loaded;
        evidence.version_count = loaded[2].what ? 3 : 2;
        gos_diagnose(&evidence, &diagnosis);
        const char *line = diagnosis.mismatch_count ? diagnosis.mismatches[0].line : "";
        if (diagnosis.mismatch_count != (pairs[i].says ? 1 : 0) ||
            (pairs[i].says && !strstr(line, pairs[i].says)))
            fail_msg("pair %zu: %zu lines, \"%s\"", i, diagnosis.mismatch_count, line);
        assert_int_equal(diagnosis.verdict.code, GOS_VERDICT_UNEXPLAINED);
        gos_scratch_release(&evidence.scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_release_needs_its_driver),
        cmocka_unit_test(versions_are_compared_number_by_number),
        cmocka_unit_test(what_does_not_fit_is_said_with_its_path_and_nothing_else),
        cmocka_unit_test(one_library_from_two_places_is_told_with_both_paths),
        cmocka_unit_test(nobody_is_told_to_reinstall_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
