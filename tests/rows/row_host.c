/*
 * Calls every row of entrypoints.def, reached in one of the ways in which
 * programs reach it (row_reach.c), against stand-ins that log.
 *
 *   rows.linked FOLDER        snapshots go to FOLDER
 *   rows.linked --list        the rows, and which of the driver's each of them comes to
 *
 * For each row and each of success, error 1 and error 2: the hook is ours, the
 * real function runs once with the same arguments and no other, its result and
 * what it wrote come back, errno stays.  What is wrong is said in a line
 * "SYMBOL: …"; a row that was run to its end says "SYMBOL: done".  Whether the
 * records are right, test_rows.py reads in the snapshots.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <gpuoomshim.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "row_abi.h"
#include "row_plans.h"
#include "row_table.h"

/* --- one trial ------------------------------------------------------------------------------- */

static struct row_script *script, *runtime_script;
static struct row_call *calls, *runtime_calls;
static const char *folder;

struct trial {
    int row;
    uint64_t words[SLOT_COUNT];
    int slots[PARAMETER_MAX]; /* where each parameter travels */
    _Alignas(16) unsigned char buffers[PARAMETER_MAX][ROW_BUFFER_BYTES];
    struct row_script script;
};

__attribute__((format(printf, 2, 3))) static void wrong(int row, const char *format, ...)
{
    va_list values;

    printf("%s: ", rows[row].symbol);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    printf("\n");
}

static bool is_behind_pointer(int row, int i)
{
    return ROW_LARGE_BEHIND_POINTER && row_signatures[row].parameters[i].bytes > 16;
}

static int words_of(int row, int i)
{
    return is_behind_pointer(row, i) ? 1 : (row_signatures[row].parameters[i].bytes + 7) / 8;
}

static void place_parameters(struct trial *trial)
{
    int in_register = 0, on_stack = ROW_REGISTERS;

    for (int i = 0; i < row_signatures[trial->row].count; i++) {
        int words = words_of(trial->row, i);
        bool fits = words <= 2 && in_register + words <= ROW_REGISTERS;
        trial->slots[i] = fits ? in_register : on_stack;
        in_register += fits ? words : 0;
        on_stack += fits ? 0 : words;
    }
}

/* Each argument differs from every other, and from what a pointer could be. */
static uint64_t argument(struct trial *trial, int i)
{
    const struct row_parameter *parameter = &row_signatures[trial->row].parameters[i];

    if (parameter->is_pointer || is_behind_pointer(trial->row, i))
        return (uint64_t)(uintptr_t)trial->buffers[i];
    return parameter->bytes == 8 ? (uint64_t)0x1000 * (unsigned)(i + 1) : (uint64_t)(i + 1);
}

static void fill_structure(struct trial *trial, int i)
{
    uint8_t bytes = row_signatures[trial->row].parameters[i].bytes;

    trial->script.structure_slot = trial->slots[i];
    trial->script.structure_bytes = bytes;
    for (int b = 0; b < bytes; b++)
        trial->buffers[i][b] = (unsigned char)(0xa0 + b);
}

static void fill_parameters(struct trial *trial)
{
    for (int i = 0; i < row_signatures[trial->row].count; i++) {
        trial->words[trial->slots[i]] = argument(trial, i);
        for (int w = 1; w < words_of(trial->row, i); w++)
            trial->words[trial->slots[i] + w] = (uint64_t)(0xa0 + i * 16 + w);
        if (is_behind_pointer(trial->row, i))
            fill_structure(trial, i);
    }
}

static void set_parameter(struct trial *trial, int i, uint64_t value)
{
    trial->words[trial->slots[i]] = value;
}

static bool is_resolver(int row)
{
    return row == ROW_cuGetProcAddress || row == ROW_cuGetProcAddress_v2;
}

static void prepare(struct trial *trial, int row)
{
    memset(trial, 0, sizeof *trial);
    trial->row = row;
    trial->script.row = row;
    place_parameters(trial);
    fill_parameters(trial);
    row_dress(rows[row].symbol, trial->buffers);
    if (is_resolver(row))
        set_parameter(trial, 2, CUDA_VERSION);
}

/* The row that a runtime's row comes to, or -1. */
static int below_of(int row)
{
    const char *symbol = row_below(rows[row].symbol);

    return symbol != NULL ? row_of(symbol) : -1;
}

static struct row_call *call_of(int row)
{
    return row < DRIVER_COUNT ? &calls[row] : &runtime_calls[row - DRIVER_COUNT];
}

#define WORD_OF(n) w[n],

static int call(const struct trial *trial)
{
    const uint64_t *w = trial->words;

    memset(calls, 0, sizeof *calls * DRIVER_COUNT);
    memset(runtime_calls, 0, sizeof *runtime_calls * (ROW_COUNT - DRIVER_COUNT));
    *script = trial->script;
    *runtime_script = trial->script;
    int result = functions[trial->row](WORDS(WORD_OF) w[15]);
    script->result = 0;
    script->row = -1;
    return result;
}

static __thread struct trial lower; /* what a runtime's row is to ask of the driver */

static void call_lower(void)
{
    const uint64_t *w = lower.words;

    lower.script.result = runtime_script->result;
    *script = lower.script;
    int result = functions[lower.row](WORDS(WORD_OF) w[15]);
    if (result != lower.script.result)
        wrong(lower.row, "returned %d to the runtime", result);
}

static void prepare_lower(struct trial *trial)
{
    int row = below_of(trial->row);

    if (row < 0)
        return;
    prepare(&lower, row);
    trial->script.below = call_lower;
}

static uint64_t mask_of(int row, int i)
{
    return row_signatures[row].parameters[i].bytes == 4 ? UINT32_MAX : UINT64_MAX;
}

static void check_words(const struct trial *trial, int i)
{
    const struct row_call *seen = call_of(trial->row);
    int end = trial->slots[i] + words_of(trial->row, i);

    for (int slot = trial->slots[i]; slot < end; slot++)
        if ((seen->words[slot] ^ trial->words[slot]) & mask_of(trial->row, i))
            wrong(trial->row, "argument %d became 0x%llx instead of 0x%llx", i,
                  (unsigned long long)seen->words[slot], (unsigned long long)trial->words[slot]);
}

/* The pointer is to a copy, and may be another each time. */
static void check_structure(const struct trial *trial, int i)
{
    if (memcmp(call_of(trial->row)->structure, trial->buffers[i],
               row_signatures[trial->row].parameters[i].bytes) != 0)
        wrong(trial->row, "argument %d, a structure, became another", i);
}

static void check_arguments(const struct trial *trial)
{
    for (int i = 0; i < row_signatures[trial->row].count; i++)
        if (is_behind_pointer(trial->row, i))
            check_structure(trial, i);
        else
            check_words(trial, i);
}

/* The library asks these itself, to know where and how much memory is. */
static bool may_be_called(int row, int under_test)
{
    return row == under_test || row == below_of(under_test) || row == ROW_cuDeviceGetMemPool ||
           row == ROW_cuDeviceGetDefaultMemPool || row == ROW_cuMemGetInfo_v2 ||
           row == ROW_cuDeviceTotalMem_v2;
}

static void check_counts(const struct trial *trial)
{
    int below = below_of(trial->row);

    if (call_of(trial->row)->count != 1)
        wrong(trial->row, "called the real function %d times", call_of(trial->row)->count);
    if (below >= 0 && call_of(below)->count != 1)
        wrong(trial->row, "%s was called %d times", rows[below].symbol, call_of(below)->count);
    for (int row = 0; row < ROW_COUNT; row++)
        if (!may_be_called(row, trial->row) && call_of(row)->count != 0)
            wrong(trial->row, "called %s", rows[row].symbol);
}

/* Nothing but what the real function wrote may have changed; `was` is how it was before. */
static void check_buffers(const struct trial *trial, struct trial *was)
{
    for (int i = 0; trial->script.result == 0 && i < WRITE_MAX; i++) {
        uint64_t *to = trial->script.writes[i].to;
        if (to != NULL)
            memcpy((unsigned char *)was + ((unsigned char *)to - (unsigned char *)trial),
                   &trial->script.writes[i].value, sizeof *to);
    }
    if (memcmp(was->buffers, trial->buffers, sizeof was->buffers) != 0)
        wrong(trial->row, "changed what an argument points to (result %d)", trial->script.result);
}

/* In the object that the library's own functions are in: the library, or the host around it. */
static bool is_of_library(const void *function, Dl_info *info)
{
    Dl_info library;

    return function != NULL && gpuoomshim_snapshot != NULL &&
           dladdr((void *)gpuoomshim_snapshot, &library) != 0 && dladdr(function, info) != 0 &&
           info->dli_fbase == library.dli_fbase;
}

/* The one thing that we change: the pointer handed out is ours (row_dress asks for cuMemAlloc). */
static void check_resolved(int row, const void *function)
{
    Dl_info info;

    if (!is_of_library(function, &info))
        wrong(row, "handed out a function that is not the library's");
}

static void try(struct trial *trial, int expected)
{
    static __thread struct trial before;

    trial->script.result = expected;
    before = *trial;
    errno = 77;
    int result = call(trial);
    if (errno != 77)
        wrong(trial->row, "set errno to %d", errno);
    if (result != expected)
        wrong(trial->row, "returned %d instead of %d", result, expected);
    check_counts(trial);
    check_arguments(trial);
    if (expected == 0 && is_resolver(trial->row))
        check_resolved(trial->row, *(void **)trial->buffers[1]);
    else
        check_buffers(trial, &before);
}

/* --- records: what is made before, and ended after
 * ------------------------------------------------ */

static __thread struct trial silent;

/* Calls around the one under test are taken on trust: they have trials of their own. */
static void run_silently(const char *symbol, int parameter, uint64_t value, uint64_t written)
{
    prepare(&silent, row_of(symbol));
    if (written != 0) {
        silent.script.writes[0].to = (uint64_t *)silent.buffers[0];
        silent.script.writes[0].value = written;
    }
    if (parameter >= 0)
        set_parameter(&silent, parameter, value);
    call(&silent);
}

/* What the nodes of a graph allocate and free is there, or gone, when it has been launched. */
static void launch_graph(uint64_t graph)
{
    const uint64_t exec = 0x5000;

    run_silently("cuGraphInstantiateWithFlags", 1, graph, exec);
    run_silently("cuGraphLaunch", 0, exec, 0);
    run_silently("cuGraphExecDestroy", 0, exec, 0);
    run_silently("cuGraphDestroy", 0, graph, 0);
}

static uint64_t graph_of_node(const struct trial *trial)
{
    return trial->words[trial->slots[1]];
}

static bool adds_node(const char *symbol)
{
    return strncmp(symbol, "cuGraphAdd", 10) == 0;
}

static void free_silently(const struct row_plan *plan, uint64_t address)
{
    run_silently(plan->frees, plan->parameter, address, 0);
    if (adds_node(plan->frees))
        launch_graph(graph_of_node(&silent));
}

static void snapshot(int row, const char *moment)
{
    char prefix[512];

    snprintf(prefix, sizeof prefix, "%s/%s.%s", folder, rows[row].symbol, moment);
    if (gpuoomshim_snapshot == NULL || gpuoomshim_snapshot(prefix) != 0)
        wrong(row, "no snapshot");
}

/* What the trial's success is to be, and where: the address is returned. */
static uint64_t expect_address(struct trial *trial, const struct row_plan *plan)
{
    /* Fits the 32 bits of the first ABI; each row has its own. */
    uint64_t address = UINT64_C(0x10000000) + (uint64_t)trial->row * 0x10000;

    if (plan->place == ROW_ARGUMENT)
        return trial->words[0];
    if (plan->handle != 0)
        address = plan->handle;
    trial->script.writes[0].to = row_out_parameter(plan, trial->buffers);
    trial->script.writes[0].value = address;
    return address;
}

static void lay_out(const struct row_plan *plan)
{
    if (plan->handle != 0)
        run_silently("cuMemCreate", -1, 0, plan->handle);
}

static void clear_up(const struct row_plan *plan)
{
    if (plan->handle != 0)
        run_silently("cuMemRelease", 0, plan->handle, 0);
}

/* The runtime tells its caller what the driver has told it. */
static uint64_t expect_address_from_below(struct trial *trial, const struct row_plan *plan)
{
    uint64_t address = expect_address(&lower, plan);

    if (plan->place == ROW_OUT) {
        trial->script.writes[0].to = (uint64_t *)trial->buffers[0];
        trial->script.writes[0].value = address;
    }
    return address;
}

static void try_making(struct trial *trial, const struct row_plan *plan)
{
    bool is_runtimes = trial->row >= DRIVER_COUNT;

    lay_out(plan);
    uint64_t address =
        is_runtimes ? expect_address_from_below(trial, plan) : expect_address(trial, plan);
    try(trial, 0);
    if (plan->frees == NULL)
        return;
    if (adds_node(plan->makes))
        launch_graph(graph_of_node(is_runtimes ? &lower : trial));
    snapshot(trial->row, "made");
    free_silently(plan, address);
    clear_up(plan);
    snapshot(trial->row, "freed");
}

/* A refused free leaves the record, a successful one ends it. */
static void try_freeing(struct trial *trial, const struct row_plan *plan)
{
    static __thread struct trial maker;

    lay_out(plan);
    prepare(&maker, row_of(plan->makes));
    uint64_t address = expect_address(&maker, plan);
    call(&maker);
    if (adds_node(plan->makes))
        launch_graph(graph_of_node(&maker));
    set_parameter(trial, plan->parameter, address);
    try(trial, 1);
    snapshot(trial->row, "kept");
    try(trial, 0);
    if (adds_node(plan->frees))
        launch_graph(graph_of_node(trial));
    clear_up(plan);
    snapshot(trial->row, "freed");
}

static void try_ending(struct trial *trial, uint64_t context)
{
    run_silently("cuDevicePrimaryCtxRetain", -1, 0, ROW_CONTEXT);
    run_silently("cuMemAlloc_v2", -1, 0, 0x7000);
    set_parameter(trial, 0, context);
    try(trial, 1);
    snapshot(trial->row, "kept");
    try(trial, 0);
    snapshot(trial->row, "freed");
}

static void try_success(struct trial *trial)
{
    const char *symbol = rows[trial->row].symbol;
    const char *below = row_below(symbol);
    const struct row_plan *making = row_plan_making(below != NULL ? below : symbol);
    const struct row_plan *freeing = row_plan_freeing(symbol);

    if (making != NULL)
        try_making(trial, making);
    else if (freeing != NULL)
        try_freeing(trial, freeing);
    else if (row_ends_context(symbol) != 0)
        try_ending(trial, row_ends_context(symbol));
    else
        try(trial, 0);
}

/* Failures that follow each other while nothing is freed would be one story, told once. */
static void go_on_to_other_work(void)
{
    run_silently("cuMemAlloc_v2", -1, 0, 0x9000);
    run_silently("cuMemFree_v2", 0, 0x9000, 0);
}

static void *run(void *arg)
{
    static __thread struct trial trial;
    int row = *(int *)arg;

    go_on_to_other_work();
    prepare(&trial, row);
    prepare_lower(&trial);
    try(&trial, 1);
    try(&trial, 2);
    try_success(&trial);
    if (row_undone_by(rows[row].symbol) != NULL)
        run_silently(row_undone_by(rows[row].symbol), 0, trial.words[0], 0);
    return NULL;
}

/* Is the function that the host got the library's, under its own name? */
static void check_reached(int row)
{
    Dl_info info;

    if (!is_of_library((void *)functions[row], &info))
        wrong(row, "is not the library's");
    else if (info.dli_sname == NULL || strcmp(info.dli_sname, rows[row].symbol) != 0)
        wrong(row, "is %s", info.dli_sname);
}

/* A thread of its own for each row: what failed before is another story. */
static void run_row(int row)
{
    pthread_t thread;

    check_reached(row);
    pthread_create(&thread, NULL, run, &row);
    pthread_join(thread, NULL);
    printf("%s: done\n", rows[row].symbol);
    fflush(stdout);
}

#define ZERO(n) 0,

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "--list") == 0) {
        for (int row = 0; row < reached_count; row++) {
            const char *below = row_below(rows[row].symbol);
            printf("%s %s %s\n", rows[row].symbol, rows[row].role,
                   below != NULL ? below : rows[row].symbol);
        }
        return 0;
    }
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *runtime = dlopen("libcudart.so.13", RTLD_NOW);
    folder = count > 1 ? words[1] : ".";
    script = must_find(driver, "row_script");
    calls = must_find(driver, "row_calls");
    runtime_script = must_find(runtime, "runtime_script");
    runtime_calls = must_find(runtime, "runtime_calls");
    reach(driver);
    functions[ROW_cuInit](WORDS(ZERO) 0);
    for (int row = 0; row < reached_count; row++)
        run_row(row);
    return 0;
}
