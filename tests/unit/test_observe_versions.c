#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/observe/kernel_module.h"
#include "../../src/observe/torch_version.h"
#include "../../src/observe/versions.h"
#include "../../src/observe/wheel.h"
#include "observe_fake_files.h"

static char version[64];

static int begin(void **state)
{
    (void)state;
    fake_files_install();
    memset(version, 0, sizeof(version));
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(fake_files_open_count(), 0);
    fake_files_remove();
    return 0;
}

static void a_link_gives_the_longer_version(void **state)
{
    (void)state;
    fake_link("/l/libcudart.so.13", "libcudart.so.13.0.96");
    assert_int_equal(gos_versions_of_file("/l/libcudart.so.13", version, sizeof(version)), 7);
    assert_string_equal(version, "13.0.96");
}

static void links_are_followed_through_folders_and_not_for_ever(void **state)
{
    (void)state;
    fake_link("/a/libx.so", "/b/libx.so.1");
    fake_link("/b/libx.so.1", "c/libx.so.1.2");
    gos_versions_of_file("/a/libx.so", version, sizeof(version));
    assert_string_equal(version, "1.2");
    fake_link("/a/loop.so.5", "loop.so.5");
    gos_versions_of_file("/a/loop.so.5", version, sizeof(version));
    assert_string_equal(version, "5");
}

static void a_file_without_a_version_has_none(void **state)
{
    (void)state;
    assert_int_equal(gos_versions_of_file("/t.so.9/libtorch_cuda.so", version, sizeof(version)), 0);
    assert_int_equal(gos_versions_of_file("", version, sizeof(version)), 0);
}

static const char *const packages[] = {".",
                                       "..",
                                       "torch",
                                       "torchvision-0.19.dist-info",
                                       "torch-2.11.0+cu130.dist-info",
                                       "nvidia_cuda_runtime_cu12-12.8.90.dist-info",
                                       "nvidia_cublas-13.0.0.19.dist-info",
                                       NULL};

static void a_wheel_gives_its_packages_version(void **state)
{
    const char *path = "/v/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12";

    (void)state;
    fake_folder("/v/lib/python3.12/site-packages", packages);
    gos_wheel_version(path, "nvidia_cuda_runtime", version, sizeof(version));
    assert_string_equal(version, "12.8.90");
}

static void a_stem_does_not_match_a_longer_name(void **state)
{
    const char *path = "/usr/lib/python3/dist-packages/torch/lib/libtorch_cuda.so";

    (void)state;
    fake_folder("/usr/lib/python3/dist-packages", packages);
    gos_wheel_version(path, "torch", version, sizeof(version));
    assert_string_equal(version, "2.11.0+cu130");
    assert_int_equal(gos_wheel_version(path, "nvidia_cudnn", version, sizeof(version)), 0);
    assert_int_equal(gos_wheel_version(path, "nvidia_cu", version, sizeof(version)), 0);
    assert_int_equal(gos_wheel_version("/usr/lib/libx.so", "torch", version, sizeof(version)), 0);
}

static void the_c_library_of_this_process_is_listed(void **state)
{
    static struct gos_evidence evidence;
    bool found = false;

    (void)state;
    gos_versions_observe(&evidence);
    for (size_t i = 0; i < evidence.version_count; i++)
        if (strcmp(evidence.versions[i].what, "glibc") == 0)
            found = evidence.versions[i].version[0] == '2' &&
                    strstr(evidence.versions[i].path, "libc.so") != NULL;
    assert_true(found);
    gos_scratch_release(&evidence.scratch);
}

static void the_kernel_says_the_version_of_its_module(void **state)
{
    (void)state;
    fake_file("/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 2023\n"
              "GCC version:  gcc version 12.3.0\n");
    assert_int_equal(gos_kernel_module_version(version, sizeof(version)), 10);
    assert_string_equal(version, "535.104.05");
}

static void the_open_kernel_module_names_the_machine_first(void **state)
{
    (void)state;
    fake_file(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\n");
    gos_kernel_module_version(version, sizeof(version));
    assert_string_equal(version, "580.159.03");
}

static void without_a_kernel_module_there_is_no_version(void **state)
{
    (void)state;
    assert_int_equal(gos_kernel_module_version(version, sizeof(version)), 0);
    fake_file("/proc/driver/nvidia/version", "something else 1.2.3\n");
    assert_int_equal(gos_kernel_module_version(version, sizeof(version)), 0);
}

#define TORCH "/v/site-packages/torch/lib/libtorch_cuda.so"

static void torch_names_its_cuda_in_its_version(void **state)
{
    (void)state;
    assert_int_equal(gos_torch_version_cuda("2.11.0+cu130", TORCH, version, sizeof(version)), 4);
    assert_string_equal(version, "13.0");
    gos_torch_version_cuda("2.1.0+cu118", TORCH, version, sizeof(version));
    assert_string_equal(version, "11.8");
    assert_int_equal(gos_torch_version_cuda("2.1.0+cpu", TORCH, version, sizeof(version)), 0);
}

static void torch_names_its_cuda_in_a_file_beside_the_library(void **state)
{
    (void)state;
    fake_file("/v/site-packages/torch/version.py",
              "from typing import Optional\n__version__ = '2.8.0'\ndebug = False\n"
              "cuda: Optional[str] = '12.8'\ngit_version = 'cafe'\nhip: Optional[str] = None\n");
    gos_torch_version_cuda("2.8.0", TORCH, version, sizeof(version));
    assert_string_equal(version, "12.8");
    assert_int_equal(gos_torch_version_cuda("2.8.0", "/opt/libtorch_cuda.so", version, 64), 0);
}

static void a_torch_without_cuda_names_none(void **state)
{
    (void)state;
    fake_file("/v/site-packages/torch/version.py",
              "cuda: Optional[str] = None\ngit_version = 'cafe'\n");
    assert_int_equal(gos_torch_version_cuda("2.8.0", TORCH, version, sizeof(version)), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_link_gives_the_longer_version),
        TEST(links_are_followed_through_folders_and_not_for_ever),
        TEST(a_file_without_a_version_has_none),
        TEST(a_wheel_gives_its_packages_version),
        TEST(a_stem_does_not_match_a_longer_name),
        TEST(the_kernel_says_the_version_of_its_module),
        TEST(the_open_kernel_module_names_the_machine_first),
        TEST(without_a_kernel_module_there_is_no_version),
        TEST(torch_names_its_cuda_in_its_version),
        TEST(torch_names_its_cuda_in_a_file_beside_the_library),
        TEST(a_torch_without_cuda_names_none),
        TEST(the_c_library_of_this_process_is_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
