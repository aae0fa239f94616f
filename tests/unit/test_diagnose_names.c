/* Who asked, in everyday names; and which settings are on already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "diagnose_fixture.h"

#include "../../src/diagnose/code_place.h"
#include "../../src/diagnose/holder.h"
#include "../../src/diagnose/library.h"
#include "../../src/diagnose/setting.h"

static void libraries_have_everyday_names(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *name;
    } rows[] = {
        {"/x/site-packages/torch/lib/libc10_cuda.so", "torch"},
        {"/x/site-packages/torch/lib/libtorch_cuda.so", "torch"},
        {"/x/dist-packages/torch/_C.cpython-312-x86_64-linux-gnu.so", "torch"},
        {"/x/site-packages/nvidia/nccl/lib/libnccl.so.2", "nccl"},
        {"/usr/lib/libcublasLt.so.13", "cublas"},
        {"/usr/lib/libcudnn_engines_precompiled.so.9", "cudnn"},
        {"/usr/lib/libcufft.so.12", "cufft"},
        {"/x/site-packages/cupy_backends/cuda/api/runtime.cpython-312.so", "cupy"},
        {"/x/site-packages/cupy/cuda/memory.cpython-312.so", "cupy"},
        {"/x/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax"},
        {"/opt/pjrt_c_api_gpu_plugin.so", "jax"},
        {"/x/site-packages/jaxlib/_jax.so", "jax"},
        {"/usr/lib/librmm.so", "rmm"},
        {"/opt/llama/libggml-cuda.so", "llama.cpp"},
        {"/x/site-packages/tensorflow/libtensorflow_cc.so.2", "tensorflow"},
        {"/usr/lib/libonnxruntime_providers_cuda.so", "onnxruntime"},
        {"/usr/lib/libnvinfer.so.10", "tensorrt"},
        {"/x/site-packages/vllm/_C.abi3.so", "vllm"},
        {"/usr/bin/python3.12", "python"},
        {"/home/torch/lib/libmine.so", "libmine.so"},
        {"train", "train"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(gos_library_name(rows[i].path), rows[i].name);
    assert_string_equal(gos_library_name(NULL), "");
}

static void only_libraries_known_to_cache_are_said_to(void **state)
{
    (void)state;
    assert_true(gos_library_caches("torch"));
    assert_false(gos_library_caches(""));
    assert_true(gos_library_caches("rmm"));
    assert_false(gos_library_caches("nccl"));
}

static void files_that_a_compiler_wrote_are_not_the_programs_own(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        bool is_installed;
    } rows[] = {
        {"/tmp/torchinductor_root/n3/cn3riexrbrh7.py", true},
        {"/home/me/.triton/cache/ab/kernel.py", true},
        {"/home/me/train/torchinductor.py", false},
        {"/x/site-packages/torch/nn/modules/linear.py", true},
        {"<string>", true},
        {"/home/me/train/model.py", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct gos_python_frame frame = {.file = rows[i].file};
        assert_int_equal(gos_code_is_installed(&frame), rows[i].is_installed);
    }
}

static void bridges_are_looked_through(void **state)
{
    (void)state;
    assert_string_equal(gos_holder_of_site(SITE_CTYPES), "python");
    assert_string_equal(gos_holder_of_site(SITE_NUMBA), "numba");
    assert_string_equal(gos_holder_of_site(SITE_JIT), "cublas");
    assert_string_equal(gos_holder_of_site(SITE_CUPY), "cupy");
    assert_string_equal(gos_holder_of_site(SITE_NCCL), "nccl");
    assert_string_equal(gos_holder_of_site(SITE_NONE), "");
}

static void request_without_a_stack_is_named_by_its_module(void **state)
{
    (void)state;
    struct gos_request request = {.site = SITE_NONE, .requester_module = 1};
    assert_string_equal(gos_holder_of_request(&request), "nccl");
    request.requester_module = UINT32_MAX;
    assert_string_equal(gos_holder_of_request(&request), "");
}

static void site_is_named_by_the_programs_own_frame(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    assert_string_equal(gos_holder_site_words(&evidence, SITE_TORCH),
                        "model.py:41 forward (torch: linear.py:125)");
    assert_string_equal(gos_holder_site_words(&evidence, SITE_APP), "train.py:88 load_batch");
    assert_string_equal(gos_holder_site_words(&evidence, SITE_NCCL), "libnccl.so.2 ncclAllocate");
    assert_string_equal(gos_holder_site_words(&evidence, SITE_JIT), "");
    assert_string_equal(gos_holder_site_words(&evidence, SITE_NONE), "");
    gos_scratch_release(&evidence.scratch);
}

static void holders_are_summed_by_name_largest_first(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.torch = 300, .torch_physical = 500, .app = 600, .pool_live = 50};
    scene_evidence(&scene, &evidence);
    gos_holders_make(&evidence, 0, &diagnosis);
    assert_int_equal(diagnosis.holder_count, 2);
    assert_string_equal(diagnosis.holders[0].name, "torch");
    assert_int_equal(diagnosis.holders[0].live_bytes, 800 * MIB);
    assert_int_equal(diagnosis.holders[0].live_count, 6);
    assert_string_equal(diagnosis.holders[1].name, "libtrain.so");
    assert_int_equal(diagnosis.holders[1].live_bytes, 650 * MIB);
    gos_scratch_release(&evidence.scratch);
}

static void set_variables(struct gos_evidence *evidence, struct gos_variable *variables,
                          size_t count)
{
    *evidence = (struct gos_evidence){.variables = variables, .variable_count = count};
}

static void torch_settings_are_read_item_by_item(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_variable on = {.name = "PYTORCH_CUDA_ALLOC_CONF",
                              .value = "max_split_size_mb:512, expandable_segments : True"};
    set_variables(&evidence, &on, 1);
    assert_true(gos_setting_torch_expandable(&evidence));
    assert_true(gos_setting_torch_has(&evidence, "max_split_size_mb"));
    assert_false(gos_setting_torch_has(&evidence, "split_size_mb"));
    on.value = "expandable_segments:False";
    assert_false(gos_setting_torch_expandable(&evidence));
    on.value = "expandable_segments";
    assert_false(gos_setting_torch_expandable(&evidence));
}

static void value_at_first_use_counts(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_variable late = {
        .name = "PYTORCH_ALLOC_CONF", .value = "expandable_segments:True", .at_start = ""};
    set_variables(&evidence, &late, 1);
    assert_false(gos_setting_torch_expandable(&evidence));
    assert_string_equal(gos_setting_torch_name(&evidence), "PYTORCH_ALLOC_CONF");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_have_everyday_names),
        cmocka_unit_test(only_libraries_known_to_cache_are_said_to),
        cmocka_unit_test(files_that_a_compiler_wrote_are_not_the_programs_own),
        cmocka_unit_test(bridges_are_looked_through),
        cmocka_unit_test(request_without_a_stack_is_named_by_its_module),
        cmocka_unit_test(site_is_named_by_the_programs_own_frame),
        cmocka_unit_test(holders_are_summed_by_name_largest_first),
        cmocka_unit_test(torch_settings_are_read_item_by_item),
        cmocka_unit_test(value_at_first_use_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
