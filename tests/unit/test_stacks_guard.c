/* Looking ahead of libgcc: where frames end, and when it must not step on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

#include <cmocka.h>

#include "../../src/base/readable.h"
#include "../../src/track/cfa_rule.h"
#include "../../src/track/unwind_guard.h"

/* --- readable memory --- */

static void readable_memory_is_told_from_what_is_not(void **state)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    assert_true(gos_is_readable((uintptr_t)pages));
    assert_true(gos_is_readable((uintptr_t)pages + 4088));
    assert_false(gos_is_readable((uintptr_t)pages + 4092));
    assert_false(gos_is_readable((uintptr_t)pages + 4096));
    munmap(pages, 8192);
    assert_false(gos_is_readable((uintptr_t)pages));
    assert_false(gos_is_readable(0));
    assert_false(gos_is_readable(UINTPTR_MAX - 7));
    assert_false(gos_is_readable(UINT64_C(0xdeadbeefdeadbeef)));
}

#if defined(__x86_64__)

struct bases {
    void *text;
    void *data;
    void *function;
};
const void *_Unwind_Find_FDE(void *address, struct bases *bases);

static const void *describe(uintptr_t address, uintptr_t *function)
{
    struct bases bases = {0};
    const void *fde = _Unwind_Find_FDE((void *)address, &bases);
    *function = (uintptr_t)bases.function;
    return fde;
}

/* --- where frames end --- */

struct prediction {
    struct gos_unwind_guard guard;
    uintptr_t end; /* of the frame before, as we see it; 0: nothing was said */
    unsigned right;
    unsigned wrong;
    unsigned refused;
};

static uintptr_t value_in(void *context, int reg)
{
    return _Unwind_GetGR(context, reg);
}

static uintptr_t end_of(const struct gos_cfa_rule *rule, struct _Unwind_Context *context)
{
    uintptr_t base =
        rule->reg == 7 ? _Unwind_GetCFA(context) : _Unwind_GetGR(context, (int)rule->reg);
    uintptr_t end = base + (uintptr_t)rule->offset;
    return rule->is_in_frame ? end : *(uintptr_t *)end;
}

static _Unwind_Reason_Code predict(struct _Unwind_Context *context, void *arg)
{
    struct prediction *prediction = arg;
    struct gos_cfa_rule rule;
    int is_signal = 0;
    struct gos_guarded_frame frame = {.value = value_in, .context = context};
    uintptr_t function;

    frame.address = _Unwind_GetIPInfo(context, &is_signal);
    frame.is_address_of_next = is_signal != 0;
    frame.stack = _Unwind_GetCFA(context);
    if (prediction->end && prediction->end == frame.stack)
        prediction->right++;
    else if (prediction->end)
        prediction->wrong++;
    const void *fde = describe(frame.address - !is_signal, &function);
    bool is_told = fde && gos_cfa_rule_find(fde, function, frame.address + (is_signal != 0), &rule);
    prediction->end = is_told ? end_of(&rule, context) : 0;
    prediction->refused += !gos_unwind_guard_allows(&prediction->guard, &frame, describe);
    return _URC_NO_REASON;
}

static void assert_predicted(unsigned at_least)
{
    struct prediction prediction = {.end = 0};

    _Unwind_Backtrace(predict, &prediction);
    assert_int_equal(prediction.wrong, 0);
    assert_int_equal(prediction.refused, 0);
    assert_true(prediction.right >= at_least);
}

static int compare(const void *a, const void *b)
{
    (void)a;
    (void)b;
    assert_predicted(5);
    return 0;
}

static void frames_end_where_libgcc_says(void **state)
{
    int numbers[2] = {1, 2};

    (void)state;
    assert_predicted(4);
    qsort(numbers, 2, sizeof numbers[0], compare);
}

__attribute__((noinline)) static void of_variable_size(unsigned bytes)
{
    volatile char *filler = __builtin_alloca(bytes);
    filler[0] = 0;
    assert_predicted(5);
    (void)filler[0];
}

__attribute__((noinline)) static void realigned(unsigned bytes)
{
    volatile _Alignas(64) char filler[64] = {0};
    volatile char *more = __builtin_alloca(bytes);
    more[0] = filler[0];
    assert_predicted(5);
    (void)more[0];
}

static void variable_and_realigned_frames_end_there_too(void **state)
{
    (void)state;
    for (unsigned bytes = 16; bytes < 4096; bytes *= 2) {
        of_variable_size(bytes);
        realigned(bytes);
    }
}

static void on_signal(int number)
{
    (void)number;
    assert_predicted(5);
}

static void signal_frames_end_there_too(void **state)
{
    static char other_stack[65536];
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    struct sigaction action = {.sa_handler = on_signal};

    (void)state;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigaltstack(&stack, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
}

static void *in_thread(void *unused)
{
    assert_predicted(2);
    return unused;
}

static void threads_frames_end_there_too(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
    pthread_join(thread, NULL);
}

/* --- descriptions made for the purpose --- */

static uint8_t unwind_data[256];

struct writer {
    uint8_t *at;
};

static void put(struct writer *writer, uint64_t value, size_t bytes)
{
    memcpy(writer->at, &value, bytes);
    writer->at += bytes;
}

static void put_all(struct writer *writer, const uint8_t *data, size_t bytes)
{
    memcpy(writer->at, data, bytes);
    writer->at += bytes;
}

/* A unit whose functions begin with the stack pointer eight below the frame's end. */
static const void *describe_as(const uint8_t *instructions, size_t bytes)
{
    static const uint8_t start[] = {0x0c, 7, 8, 0x90, 1}; /* def_cfa rsp+8; rip at -8 */
    struct writer writer = {unwind_data};

    memset(unwind_data, 0, sizeof unwind_data);
    put(&writer, 4 + 1 + 3 + 1 + 1 + 1 + 1 + 1 + sizeof start, 4);
    put(&writer, 0, 4);
    put(&writer, 1, 1);
    put_all(&writer, (const uint8_t *)"zR", 3);
    put(&writer, 1, 1);    /* code alignment */
    put(&writer, 0x78, 1); /* data alignment: -8 */
    put(&writer, 16, 1);   /* return column */
    put(&writer, 1, 1);
    put(&writer, 0x1b, 1); /* addresses: four bytes, relative */
    put_all(&writer, start, sizeof start);
    uint8_t *fde = writer.at;
    put(&writer, 4 + 4 + 4 + 1 + bytes, 4);
    put(&writer, (uint64_t)(writer.at - unwind_data), 4);
    put(&writer, 0, 4);
    put(&writer, 100, 4);
    put(&writer, 0, 1);
    put_all(&writer, instructions, bytes);
    return fde;
}

#define RULE(rule, address, ...)                                                                   \
    gos_cfa_rule_find(                                                                             \
        describe_as((const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})), 1000,       \
        address, rule)

static void rule_is_that_of_the_place(void **state)
{
    struct gos_cfa_rule rule;

    (void)state;
    /* push rbp (1 byte); mov rbp, rsp (3 more); 16 further on, as before */
    for (uintptr_t address = 1001; address < 1030; address++) {
        assert_true(
            RULE(&rule, address, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x50, 0x0c, 7, 8));
        assert_int_equal(rule.reg, address <= 1004 || address > 1020 ? 7 : 6);
        assert_int_equal(rule.offset, address <= 1001 || address > 1020 ? 8 : 16);
        assert_int_equal(rule.lowest, address <= 1001 ? -8 : -16);
        assert_true(rule.has_return && rule.return_offset == -8 && rule.is_in_frame);
    }
}

static void remembered_rule_comes_back(void **state)
{
    struct gos_cfa_rule rule;

    (void)state;
    assert_true(RULE(&rule, 1100, 0x0e, 32, 0x0a, 0x0e, 48, 0x0b));
    assert_int_equal(rule.offset, 32);
}

static void end_kept_in_the_frame_is_told(void **state)
{
    struct gos_cfa_rule rule;

    (void)state;
    assert_true(RULE(&rule, 1100, 0x0f, 3, 0x76, 0x78, 0x06)); /* the word at rbp-8 */
    assert_int_equal(rule.reg, 6);
    assert_int_equal(rule.offset, -8);
    assert_false(rule.is_in_frame);
    assert_true(RULE(&rule, 1100, 0x0f, 2, 0x77, 0x08)); /* rsp+8 */
    assert_true(rule.is_in_frame);
}

static void what_is_not_understood_is_refused(void **state)
{
    struct gos_cfa_rule rule;

    (void)state;
    assert_false(RULE(&rule, 1100, 0x3f));                   /* unknown */
    assert_false(RULE(&rule, 1100, 0x0b));                   /* nothing to bring back */
    assert_false(RULE(&rule, 1100, 0x0f, 90, 0x76));         /* longer than there is */
    assert_false(RULE(&rule, 1100, 0x0f, 3, 0x76, 0x78, 9)); /* other arithmetic */
    assert_false(RULE(&rule, 1100, 0x0e));                   /* ends within a number */
    assert_false(RULE(&rule, 1100, 0x0c, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                      0xff, 1));
}

/* --- what is allowed --- */

static uintptr_t rbp;

static uintptr_t told_rbp(void *context, int reg)
{
    (void)context;
    return reg == 6 ? rbp : 0;
}

static const void *described;

static const void *only_here(uintptr_t address, uintptr_t *function)
{
    *function = 1000;
    return address >= 1000 && address < 1100 ? described : NULL;
}

static bool allows(uintptr_t frame_pointer, uintptr_t *stack)
{
    struct gos_unwind_guard guard = {0};
    struct gos_guarded_frame frame = {
        .address = 1050, .stack = (uintptr_t)stack, .value = told_rbp};

    rbp = frame_pointer;
    return gos_unwind_guard_allows(&guard, &frame, only_here);
}

static void frame_by_a_damaged_pointer_is_the_last(void **state)
{
    uintptr_t stack[64] = {0};

    (void)state;
    described = describe_as((const uint8_t[]){0x0c, 6, 16, 0x86, 2}, 5);
    stack[21] = 1060; /* return address, above rbp's place */
    assert_true(allows((uintptr_t)&stack[20], stack));
    assert_false(allows(0, stack));
    assert_false(allows(8, stack));
    assert_false(allows(UINTPTR_MAX - 3, stack));
    assert_false(allows(UINT64_C(0xdeadbeefdeadbeef), stack));
    assert_false(allows((uintptr_t)&stack[20], &stack[30])); /* further in */
}

static void frame_with_a_damaged_return_address_is_the_last(void **state)
{
    uintptr_t stack[64] = {0};

    (void)state;
    described = describe_as((const uint8_t[]){0x0c, 7, 24}, 3);
    stack[2] = 0; /* the stack's end */
    assert_true(allows(0, stack));
    stack[2] = (uintptr_t)&frame_with_a_damaged_return_address_is_the_last;
    assert_true(allows(0, stack));
    stack[2] = 1;
    assert_false(allows(0, stack));
    stack[2] = UINT64_C(0xdeadbeefdeadbeef);
    assert_false(allows(0, stack));
    stack[2] = UINTPTR_MAX;
    assert_false(allows(0, stack));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readable_memory_is_told_from_what_is_not),
#if defined(__x86_64__)
        cmocka_unit_test(frames_end_where_libgcc_says),
        cmocka_unit_test(variable_and_realigned_frames_end_there_too),
        cmocka_unit_test(signal_frames_end_there_too),
        cmocka_unit_test(threads_frames_end_there_too),
        cmocka_unit_test(rule_is_that_of_the_place),
        cmocka_unit_test(remembered_rule_comes_back),
        cmocka_unit_test(end_kept_in_the_frame_is_told),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(frame_by_a_damaged_pointer_is_the_last),
        cmocka_unit_test(frame_with_a_damaged_return_address_is_the_last),
#endif
    };

    return cmocka_run_group_tests_name("stacks_guard", tests, NULL, NULL);
}
