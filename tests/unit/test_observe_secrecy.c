#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/observe/secrecy.h"

static const char *const secret_names[] = {"NVIDIA_API_KEY", "TORCH_HUB_TOKEN", "--hf-token",
                                           "JAX_PASSWORD",   "--wandb.apikey",  "CUPY_SECRET"};
static const char *const open_names[] = {"CUDA_VISIBLE_DEVICES",
                                         "--tokenizer",
                                         "--max_tokens",
                                         "NCCL_SOCKET_IFNAME",
                                         "--monkey",
                                         "TORCH_HOME",
                                         ""};

static const char *const secret_values[] = {
    "hf_abcdefGHIJKLmnop",
    "a,sk-abcdefghijklmnopqr",
    "http://user:pass@proxy.example:8080/",
    "Zx81QvT5hR2mN7pLw4KbYc9D",
    "0123456789abcdef0123456789abcdef01234567",
    "--token=ghp_0123456789abcdefghij",
};
static const char *const open_values[] = {
    "0,1,2,3",
    "GPU-8f3a1b2c-1234-abcd-9f00-0123456789ab",
    "MIG-8f3a1b2c-1234-abcd-9f00-0123456789ab",
    "expandable_segments:True,max_split_size_mb:128",
    "--xla_gpu_force_compilation_parallelism=1 --xla_dump_to=/tmp/x",
    "/home/user/.cache/torch",
    "https://proxy.example:8080/path@2",
    "cuda>=12.4 brand=tesla,driver>=470,driver<471",
    "",
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void names_that_end_in_a_word_for_a_secret_are_recognised(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(secret_names); i++)
        assert_true(gos_secrecy_name(secret_names[i], strlen(secret_names[i])));
}

static void names_that_only_contain_such_a_word_are_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(open_names); i++)
        assert_false(gos_secrecy_name(open_names[i], strlen(open_names[i])));
}

static void values_that_look_like_tokens_are_recognised(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(secret_values); i++)
        assert_true(gos_secrecy_value(secret_values[i], strlen(secret_values[i])));
}

static void settings_and_device_names_are_not_taken_for_tokens(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(open_values); i++)
        assert_false(gos_secrecy_value(open_values[i], strlen(open_values[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_end_in_a_word_for_a_secret_are_recognised),
        cmocka_unit_test(names_that_only_contain_such_a_word_are_not),
        cmocka_unit_test(values_that_look_like_tokens_are_recognised),
        cmocka_unit_test(settings_and_device_names_are_not_taken_for_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
