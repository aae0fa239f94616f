#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/base/module.h"
#include "../../src/cuda/loader.h"
#include "../../src/cuda/nvml.h"

/* --- a small NVML: what each function answers ------------------------------------------------ */

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

static struct {
    int init, handle, memory_v2, memory_v1, compute; /* results */
    const char *uuid;                                /* of the one device */
    const char *hidden; /* symbols with this in their name are absent */
    unsigned listed;    /* processes on the compute list */
} nvml;

static int opens;

static int init(void)
{
    return nvml.init;
}

static int get_handle(const char *uuid, void **handle)
{
    if (nvml.handle)
        return nvml.handle;
    *handle = &nvml;
    return strcmp(uuid, nvml.uuid) == 0 ? 0 : 6;
}

static int memory_v2(void *handle, void *answer)
{
    const unsigned long long numbers[] = {1000, 30, 900, 70};
    unsigned version;

    memcpy(&version, answer, sizeof(version));
    if (handle != &nvml || version != (40 | 2u << 24))
        return 25;
    memcpy((char *)answer + 8, numbers, sizeof(numbers));
    return nvml.memory_v2;
}

static int memory_v1(void *handle, unsigned long long answer[3])
{
    (void)handle;
    answer[0] = 1000;
    answer[1] = 900;
    answer[2] = 100;
    return nvml.memory_v1;
}

static int answer_list(unsigned *count, struct process *answer, const struct process *list,
                       unsigned length)
{
    unsigned room = *count;

    *count = length;
    if (room < length)
        return 7;
    memcpy(answer, list, length * sizeof(*list));
    return 0;
}

static int list_compute(void *handle, unsigned *count, struct process *answer)
{
    static struct process list[1000];

    (void)handle;
    for (unsigned i = 0; i < nvml.listed; i++)
        list[i] = (struct process){100 + i, 10 * i, 0, 0};
    return nvml.compute ? nvml.compute : answer_list(count, answer, list, nvml.listed);
}

static int list_graphics(void *handle, unsigned *count, struct process *answer)
{
    static const struct process list[] = {{101, 99, 0, 0}, {7, ~0ull, 0, 0}};

    (void)handle;
    return answer_list(count, answer, list, 2);
}

static int list_mps(void *handle, unsigned *count, struct process *answer)
{
    (void)handle, (void)count, (void)answer;
    return 3;
}

static int is_mig(void *handle, unsigned *answer)
{
    *answer = handle == &nvml;
    return nvml.handle;
}

static int bar1(void *handle, unsigned long long answer[3])
{
    answer[0] = handle == &nvml ? 256 : 0;
    answer[1] = 200;
    answer[2] = 56;
    return nvml.handle;
}

static int driver_version(char *buffer, unsigned bytes)
{
    return snprintf(buffer, bytes, "580.159") < (int)bytes ? 0 : 7;
}

static void *open_library(const char *name, int flags)
{
    (void)flags;
    opens++;
    return strcmp(name, "libnvidia-ml.so.1") == 0 && nvml.uuid ? &nvml : NULL;
}

static void *find_symbol(void *handle, const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } symbols[] = {
        {"nvmlInit_v2", init},
        {"nvmlDeviceGetHandleByUUID", get_handle},
        {"nvmlDeviceGetMemoryInfo_v2", memory_v2},
        {"nvmlDeviceGetMemoryInfo", memory_v1},
        {"nvmlDeviceGetComputeRunningProcesses_v3", list_compute},
        {"nvmlDeviceGetComputeRunningProcesses_v2", list_compute},
        {"nvmlDeviceGetGraphicsRunningProcesses_v2", list_graphics},
        {"nvmlDeviceGetMPSComputeRunningProcesses_v3", list_mps},
        {"nvmlDeviceIsMigDeviceHandle", is_mig},
        {"nvmlDeviceGetBAR1MemoryInfo", bar1},
        {"nvmlSystemGetDriverVersion", driver_version},
    };

    assert_ptr_equal(handle, &nvml);
    if (nvml.hidden && strstr(name, nvml.hidden))
        return NULL;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (strcmp(symbols[i].name, name) == 0)
            return symbols[i].function;
    return NULL;
}

static const uint8_t uuid[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};

static int start(void **state)
{
    (void)state;
    gos_loader.open = open_library;
    gos_loader.symbol = find_symbol;
    memset(&nvml, 0, sizeof(nvml));
    nvml.uuid = "GPU-01234567-89ab-cdef-fedc-ba9876543210";
    nvml.listed = 3;
    opens = 0;
    gos_nvml_reset_after_fork();
    return 0;
}

/* --- tests ----------------------------------------------------------------------------------- */

static void an_instance_and_the_window_are_told(void **state)
{
    uint64_t total = 0, used = 0;
    bool mig = false;

    (void)state;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_is_mig(&nvml, &mig), 0);
    assert_true(mig);
    assert_int_equal(gos_nvml_bar1(&nvml, &total, &used), 0);
    assert_int_equal(total, 256);
    assert_int_equal(used, 56);
    nvml.handle = 4;
    assert_int_equal(gos_nvml_is_mig(&nvml, &mig), -EACCES);
    assert_false(mig);
    assert_int_equal(gos_nvml_bar1(&nvml, &total, &used), -EACCES);
}

static void an_nvml_that_knows_neither_is_survived(void **state)
{
    uint64_t total = 0, used = 0;
    bool mig = true;

    (void)state;
    nvml.hidden = "nvmlDeviceIsMig";
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_is_mig(&nvml, &mig), -ENOENT);
    assert_false(mig);
    gos_nvml_reset_after_fork();
    nvml.hidden = "BAR1";
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_bar1(&nvml, &total, &used), -ENOENT);
}

static void without_the_library_everything_says_so_and_it_is_looked_for_once(void **state)
{
    struct gos_nvml_memory memory;
    struct gos_nvml_process processes[4];
    size_t count = 4;
    char version[32];
    void *handle;

    (void)state;
    nvml.uuid = NULL;
    assert_int_equal(gos_nvml_device(uuid, &handle), -ENOENT);
    assert_int_equal(gos_nvml_open(), -ENOENT);
    assert_int_equal(gos_nvml_open(), -ENOENT);
    assert_int_equal(opens, 1);
    assert_int_equal(gos_nvml_device(uuid, &handle), -ENOENT);
    assert_int_equal(gos_nvml_memory(&nvml, &memory), -ENOENT);
    assert_int_equal(gos_nvml_processes(&nvml, processes, &count), -ENOENT);
    assert_int_equal(count, 0);
    assert_int_equal(gos_nvml_driver_version(version, sizeof(version)), -ENOENT);
}

static void it_is_opened_once(void **state)
{
    (void)state;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(opens, 1);
}

static void a_driver_that_is_not_loaded_counts_as_absent(void **state)
{
    void *handle;

    (void)state;
    nvml.init = 9;
    assert_int_equal(gos_nvml_open(), -ENOENT);
    assert_int_equal(gos_nvml_device(uuid, &handle), -ENOENT);
}

static void a_device_is_found_by_its_uuid_or_that_of_its_instance(void **state)
{
    void *handle = NULL;

    (void)state;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_device(uuid, &handle), 0);
    assert_ptr_equal(handle, &nvml);
    nvml.uuid = "MIG-01234567-89ab-cdef-fedc-ba9876543210";
    assert_int_equal(gos_nvml_device(uuid, &handle), 0);
    nvml.uuid = "GPU-01234567-89ab-cdef-fedc-ba9876543211";
    assert_int_equal(gos_nvml_device(uuid, &handle), -EIO);
    nvml.handle = 4;
    assert_int_equal(gos_nvml_device(uuid, &handle), -EACCES);
}

static void memory_is_read_with_what_is_reserved(void **state)
{
    struct gos_nvml_memory memory;

    (void)state;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_memory(&nvml, &memory), 0);
    assert_int_equal(memory.total_bytes, 1000);
    assert_int_equal(memory.reserved_bytes, 30);
    assert_int_equal(memory.free_bytes, 900);
    assert_int_equal(memory.used_bytes, 70);
}

static void an_older_library_gives_memory_without_what_is_reserved(void **state)
{
    struct gos_nvml_memory memory;

    (void)state;
    nvml.memory_v2 = 25;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_memory(&nvml, &memory), 0);
    assert_int_equal(memory.reserved_bytes, 0);
    assert_int_equal(memory.used_bytes, 100);
    nvml.memory_v1 = 999;
    assert_int_equal(gos_nvml_memory(&nvml, &memory), -EIO);
}

static void refusals_are_told_apart(void **state)
{
    struct gos_nvml_memory memory;

    (void)state;
    assert_int_equal(gos_nvml_open(), 0);
    nvml.memory_v2 = 4;
    assert_int_equal(gos_nvml_memory(&nvml, &memory), -EACCES);
    nvml.memory_v2 = 3;
    assert_int_equal(gos_nvml_memory(&nvml, &memory), -ENOTSUP);
}

static void processes_of_all_lists_occur_once_with_the_larger_number(void **state)
{
    struct gos_nvml_process processes[8];
    size_t count = 8;

    (void)state;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_processes(&nvml, processes, &count), 0);
    assert_int_equal(count, 4);
    assert_int_equal(processes[0].pid, 100);
    assert_int_equal(processes[1].pid, 101);
    assert_int_equal(processes[1].used_bytes, 99);
    assert_int_equal(processes[2].used_bytes, 20);
    assert_int_equal(processes[3].pid, 7);
    assert_true(processes[3].used_bytes == UINT64_MAX);
}

static void more_processes_than_expected_are_asked_for_again(void **state)
{
    static struct gos_nvml_process processes[1000];
    size_t count = 1000;

    (void)state;
    nvml.listed = 700;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_processes(&nvml, processes, &count), 0);
    assert_int_equal(count, 701);
    assert_int_equal(processes[699].pid, 799);
}

static void a_small_array_is_filled_and_not_overrun(void **state)
{
    struct gos_nvml_process processes[3] = {{0, 0}, {0, 0}, {4711, 4711}};
    size_t count = 2;

    (void)state;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_processes(&nvml, processes, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(processes[1].used_bytes, 99);
    assert_int_equal(processes[2].pid, 4711);
}

static void a_refused_list_is_an_error_an_absent_function_too(void **state)
{
    struct gos_nvml_process processes[2];
    size_t count = 2;

    (void)state;
    nvml.compute = 4;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_processes(&nvml, processes, &count), -EACCES);
    gos_nvml_reset_after_fork();
    nvml.hidden = "Compute";
    count = 2;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_processes(&nvml, processes, &count), -ENOENT);
}

static void an_older_name_of_the_same_function_is_used(void **state)
{
    struct gos_nvml_process processes[2];
    size_t count = 2;

    (void)state;
    nvml.hidden = "_v3";
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_processes(&nvml, processes, &count), 0);
    assert_int_equal(count, 2);
}

static void the_drivers_version_is_text(void **state)
{
    char version[32], small[4];

    (void)state;
    assert_int_equal(gos_nvml_open(), 0);
    assert_int_equal(gos_nvml_driver_version(version, sizeof(version)), 0);
    assert_string_equal(version, "580.159");
    assert_int_equal(gos_nvml_driver_version(small, sizeof(small)), -EIO);
}

static struct gos_loader original;

static void the_real_loader_opens_libraries_and_leaves_no_error(void **state)
{
    void *handle = original.open("libc.so.6", 1);
    void *function;

    (void)state;
    assert_non_null(handle);
    function = original.symbol(handle, "dl_iterate_phdr");
    assert_non_null(function);
    assert_string_equal(gos_module_of((uintptr_t)function)->name, "libc.so.6");
    assert_null(original.symbol(handle, "no_such_function"));
    assert_null(original.open("libnosuchthing.so.9", 1));
    assert_null(((char *(*)(void))original.symbol(handle, "dlerror"))());
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_the_library_everything_says_so_and_it_is_looked_for_once),
        TEST(it_is_opened_once),
        TEST(a_driver_that_is_not_loaded_counts_as_absent),
        TEST(a_device_is_found_by_its_uuid_or_that_of_its_instance),
        TEST(memory_is_read_with_what_is_reserved),
        TEST(an_older_library_gives_memory_without_what_is_reserved),
        TEST(refusals_are_told_apart),
        TEST(processes_of_all_lists_occur_once_with_the_larger_number),
        TEST(more_processes_than_expected_are_asked_for_again),
        TEST(a_small_array_is_filled_and_not_overrun),
        TEST(a_refused_list_is_an_error_an_absent_function_too),
        TEST(an_older_name_of_the_same_function_is_used),
        TEST(an_instance_and_the_window_are_told),
        TEST(an_nvml_that_knows_neither_is_survived),
        TEST(the_drivers_version_is_text),
        TEST(the_real_loader_opens_libraries_and_leaves_no_error),
    };

    original = gos_loader;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
