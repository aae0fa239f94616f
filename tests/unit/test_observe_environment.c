#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../src/observe/command_line.h"
#include "../../src/observe/environment.h"
#include "../../src/observe/peek.h"
#include "observe_fake_files.h"

static struct gos_evidence evidence;

static int begin(void **state)
{
    (void)state;
    clearenv();
    fake_files_install();
    memset(&evidence, 0, sizeof(evidence));
    return 0;
}

static int end(void **state)
{
    (void)state;
    gos_scratch_release(&evidence.scratch);
    fake_files_remove();
    return 0;
}

static const struct gos_variable *find(const char *name)
{
    for (size_t i = 0; i < evidence.variable_count; i++)
        if (strcmp(evidence.variables[i].name, name) == 0)
            return &evidence.variables[i];
    return NULL;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static void one_variable_can_be_asked_for(void **state)
{
    char value[8] = "";

    (void)state;
    assert_false(gos_environment_now("CUDA_VISIBLE_DEVICES", value, sizeof value));
    set("CUDA_VISIBLE_DEVICE", "7");
    set("CUDA_VISIBLE_DEVICES", "1,0");
    assert_true(gos_environment_now("CUDA_VISIBLE_DEVICES", value, sizeof value));
    assert_string_equal(value, "1,0");
}

static void only_listed_variables_are_kept_in_order_of_names(void **state)
{
    (void)state;
    set("XLA_FLAGS", "--x");
    set("HOME", "/root");
    set("CUDA_VISIBLE_DEVICES", "1");
    set("AWS_REGION", "eu");
    set("RANKING", "3");
    set("SLURM_JOB_NAME", "secret plan");
    gos_environment_remember();
    gos_environment_observe(&evidence);
    assert_int_equal(evidence.variable_count, 2);
    assert_string_equal(evidence.variables[0].name, "CUDA_VISIBLE_DEVICES");
    assert_string_equal(evidence.variables[0].value, "1");
    assert_string_equal(evidence.variables[1].name, "XLA_FLAGS");
}

static void every_pattern_of_the_list_admits_its_names(void **state)
{
    static const char *const names[] = {"CUDA_LAUNCH_BLOCKING",
                                        "NVIDIA_VISIBLE_DEVICES",
                                        "NCCL_DEBUG",
                                        "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF",
                                        "TORCH_LOGS",
                                        "XLA_PYTHON_CLIENT_MEM_FRACTION",
                                        "JAX_PLATFORMS",
                                        "TF_GPU_ALLOCATOR",
                                        "CUPY_GPU_MEMORY_LIMIT",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_LOCALID",
                                        "SLURM_JOB_ID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "GPUOOMSHIM_RETRY",
                                        "LD_PRELOAD",
                                        "LD_LIBRARY_PATH"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_true(gos_environment_allows(names[i], strlen(names[i])));
    assert_false(gos_environment_allows("PYTORCH_CUDA_ALLOC_CONF_2", 25));
    assert_false(gos_environment_allows("PATH", 4));
    assert_false(gos_environment_allows("", 0));
}

static void secrets_are_named_but_not_shown(void **state)
{
    (void)state;
    set("NVIDIA_API_KEY", "abc");
    set("TORCH_X", "hf_abcdefGHIJKLmnopqrst");
    set("LD_LIBRARY_PATH", "/nix/store/0123456789abcdef0123456789abcdef-cuda/lib");
    gos_environment_remember();
    gos_environment_observe(&evidence);
    assert_string_equal(find("NVIDIA_API_KEY")->value, "(not shown)");
    assert_string_equal(find("TORCH_X")->value, "(not shown)");
    assert_non_null(strstr(find("LD_LIBRARY_PATH")->value, "/nix/store"));
}

static void a_changed_value_shows_both_states(void **state)
{
    (void)state;
    set("CUDA_VISIBLE_DEVICES", "0,1");
    set("NCCL_DEBUG", "INFO");
    set("TORCH_LOGS", "same");
    gos_environment_remember();
    set("CUDA_VISIBLE_DEVICES", "1");
    set("PYTORCH_ALLOC_CONF", "backend:native");
    unsetenv("NCCL_DEBUG");
    gos_environment_observe(&evidence);
    assert_string_equal(find("CUDA_VISIBLE_DEVICES")->value, "1");
    assert_string_equal(find("CUDA_VISIBLE_DEVICES")->at_start, "0,1");
    assert_string_equal(find("PYTORCH_ALLOC_CONF")->at_start, "");
    assert_string_equal(find("NCCL_DEBUG")->value, "");
    assert_string_equal(find("NCCL_DEBUG")->at_start, "INFO");
    assert_null(find("TORCH_LOGS")->at_start);
}

static void rank_and_world_come_from_the_launcher(void **state)
{
    (void)state;
    set("SLURM_PROCID", "9");
    set("SLURM_NTASKS", "16");
    gos_environment_observe(&evidence);
    assert_int_equal(evidence.rank, 9);
    assert_int_equal(evidence.world, 16);
    gos_scratch_release(&evidence.scratch);
    memset(&evidence, 0, sizeof(evidence));
    set("RANK", "3");
    set("WORLD_SIZE", "8");
    gos_environment_observe(&evidence);
    assert_int_equal(evidence.rank, 3);
    assert_int_equal(evidence.world, 8);
}

static void a_rank_that_is_no_number_is_unknown(void **state)
{
    (void)state;
    set("RANK", "first");
    set("WORLD_SIZE", "99999999999999999999");
    gos_environment_observe(&evidence);
    assert_int_equal(evidence.rank, -1);
    assert_int_equal(evidence.world, -1);
}

static void a_very_long_value_is_cut(void **state)
{
    static char value[5000];

    (void)state;
    memset(value, ':', sizeof(value) - 1);
    set("LD_LIBRARY_PATH", value);
    gos_environment_observe(&evidence);
    assert_in_range(strlen(find("LD_LIBRARY_PATH")->value), 500, 1023);
}

static void a_block_that_vanished_is_survived_with_the_remembered_values(void **state)
{
    char **block = environ;

    (void)state;
    set("NCCL_DEBUG", "WARN");
    gos_environment_remember();
    environ = (char **)16;
    gos_environment_observe(&evidence);
    environ = block;
    assert_int_equal(evidence.variable_count, 1);
    assert_string_equal(find("NCCL_DEBUG")->value, "WARN");
    assert_int_equal(evidence.incomplete_count, 1);
}

static void a_block_that_is_torn_half_way_gives_the_remembered_values(void **state)
{
    char *torn[] = {(char *)(uintptr_t) "CUDA_CACHE_PATH=/c", (char *)16, NULL};
    char **block = environ;

    (void)state;
    set("NCCL_DEBUG", "WARN");
    gos_environment_remember();
    environ = torn;
    gos_environment_observe(&evidence);
    environ = block;
    assert_int_equal(evidence.variable_count, 1);
    assert_string_equal(find("NCCL_DEBUG")->value, "WARN");
    assert_int_equal(evidence.incomplete_count, 1);
}

static void text_at_the_end_of_a_page_is_copied(void **state)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char copy[64];

    (void)state;
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    strcpy(pages + 4096 - 6, "hello");
    assert_true(gos_peek_text(pages + 4096 - 6, copy, sizeof(copy)));
    assert_string_equal(copy, "hello");
    pages[4095] = '!';
    assert_false(gos_peek_text(pages + 4096 - 6, copy, sizeof(copy)));
    assert_false(gos_peek_text(NULL, copy, sizeof(copy)));
    munmap(pages, 8192);
}

/* As in a container whose filter of system calls does not know the quick way. */
static void forbid_direct_peeking(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int child_peeks_in_a_container(void)
{
    char copy[6] = "";
    char byte;

    forbid_direct_peeking();
    return gos_peek("hello", copy, sizeof(copy)) && strcmp(copy, "hello") == 0 &&
                   !gos_peek((const void *)16, &byte, 1)
               ? 0
               : 1;
}

static void memory_is_copied_where_the_direct_way_is_forbidden(void **state)
{
    int status = -1;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(child_peeks_in_a_container());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void words_of_the_command_line_are_joined(void **state)
{
    static const char words[] = "python\0train.py\0--lr=1\0";

    (void)state;
    fake_file_bytes("/proc/self/cmdline", words, sizeof(words) - 1);
    gos_command_line_observe(&evidence);
    assert_string_equal(evidence.command, "python train.py --lr=1");
}

static void secrets_on_the_command_line_are_not_shown(void **state)
{
    static const char words[] = "x\0--hf-token\0abc\0--api-key=def\0--url=http://a:b@c\0"
                                "hf_abcdefGHIJKLmnopqrst\0HF_TOKEN=abc\0--tokenizer=bert";

    (void)state;
    fake_file_bytes("/proc/self/cmdline", words, sizeof(words));
    gos_command_line_observe(&evidence);
    assert_string_equal(evidence.command,
                        "x --hf-token (not shown) --api-key=(not shown) --url=(not shown) "
                        "(not shown) HF_TOKEN=(not shown) --tokenizer=bert");
}

static void a_long_command_line_is_cut_at_a_word(void **state)
{
    static char words[1000];

    (void)state;
    memset(words, 'z', sizeof(words));
    words[100] = '\0';
    fake_file_bytes("/proc/self/cmdline", words, sizeof(words));
    gos_command_line_observe(&evidence);
    assert_int_equal(strlen(evidence.command), 104);
    assert_string_equal(evidence.command + 99, "z ...");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_variable_can_be_asked_for),
        TEST(only_listed_variables_are_kept_in_order_of_names),
        TEST(every_pattern_of_the_list_admits_its_names),
        TEST(secrets_are_named_but_not_shown),
        TEST(a_changed_value_shows_both_states),
        TEST(rank_and_world_come_from_the_launcher),
        TEST(a_rank_that_is_no_number_is_unknown),
        TEST(a_very_long_value_is_cut),
        TEST(a_block_that_vanished_is_survived_with_the_remembered_values),
        TEST(a_block_that_is_torn_half_way_gives_the_remembered_values),
        TEST(text_at_the_end_of_a_page_is_copied),
        TEST(memory_is_copied_where_the_direct_way_is_forbidden),
        TEST(words_of_the_command_line_are_joined),
        TEST(secrets_on_the_command_line_are_not_shown),
        TEST(a_long_command_line_is_cut_at_a_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
