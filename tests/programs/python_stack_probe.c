/*
 * A library for Python programs to load with ctypes: it captures the stack it
 * was called on and tells what it saw, so that the program can compare that
 * with what its own interpreter says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "../../src/base/module.h"
#include "../../src/base/options.h"
#include "../../src/base/text.h"
#include "../../src/track/python_frames.h"
#include "../../src/track/python_lines.h"
#include "../../src/track/site.h"
#include "../../src/track/unwind.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void probe_open(void);
EXPORT const char *probe_version(void);
EXPORT const char *probe_unsupported(void);
EXPORT const char *probe_unwinder(void);
EXPORT int probe_python(char *buffer, size_t bytes);
EXPORT int probe_native(char *buffer, size_t bytes);
EXPORT uint32_t probe_site(void);
EXPORT void probe_at_exit(void);
EXPORT int probe_call(int (*function)(void));
EXPORT int probe_line(int format, const uint8_t *table, size_t bytes, int firstline,
                      uint32_t offset);
EXPORT uint64_t probe_time(const char *what, uint32_t repeat, uint32_t *native, uint32_t *python);

void probe_open(void)
{
    gos_options.stack = GOS_STACK_BOTH;
    gos_options.stack_depth = GOS_FRAME_MAX;
    gos_unwind_open();
}

const char *probe_version(void)
{
    return gos_python_version();
}

const char *probe_unsupported(void)
{
    return gos_python_unsupported();
}

const char *probe_unwinder(void)
{
    return gos_unwind_name();
}

uint32_t probe_site(void)
{
    return gos_unwind_site();
}

/* A capture after the interpreter is gone, as static destructors make one when they free. */
static void capture_at_exit(void)
{
    gos_unwind_site();
}

void probe_at_exit(void)
{
    atexit(capture_at_exit);
}

/* One line for each Python frame, newest first: file, function and line, apart by tabs. */
int probe_python(char *buffer, size_t bytes)
{
    struct gos_text text = gos_text_on(buffer, bytes);
    const struct gos_site *site = gos_site_get(gos_unwind_site());

    for (uint32_t i = 0; site && i < site->python_count; i++)
        gos_text_format(&text, "%s\t%s\t%d\n", site->python[i].file, site->python[i].function,
                        site->python[i].line);
    return site && !text.truncated ? (int)site->python_count : -1;
}

/* One line for each native frame, newest first: the name of its module. */
int probe_native(char *buffer, size_t bytes)
{
    struct gos_text text = gos_text_on(buffer, bytes);
    const struct gos_site *site = gos_site_get(gos_unwind_site());

    for (uint32_t i = 0; site && i < site->native_count; i++) {
        const struct gos_module *module = gos_module_at(site->native[i].module);
        gos_text_format(&text, "%s\n", module ? module->name : "?");
    }
    return site && !text.truncated ? (int)site->native_count : -1;
}

/* Native frames between Python frames. */
int probe_call(int (*function)(void))
{
    return function() + 1;
}

int probe_line(int format, const uint8_t *table, size_t bytes, int firstline, uint32_t offset)
{
    return gos_python_line((enum gos_python_lines)format, table, bytes, firstline, offset);
}

/* --- how long it takes ------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void one_capture(struct gos_stack *stack, uint32_t round)
{
    (void)round;
    gos_unwind_capture(stack, GOS_FRAME_MAX);
}

static void one_python(struct gos_stack *stack, uint32_t round)
{
    (void)round;
    gos_python_capture(stack, GOS_FRAME_MAX);
}

static void one_site(struct gos_stack *stack, uint32_t round)
{
    (void)stack;
    (void)round;
    gos_unwind_site();
}

static void one_hit(struct gos_stack *stack, uint32_t round)
{
    (void)round;
    gos_site_intern(stack);
}

/* Known frames in a new order each time: what a stack costs that was never seen. */
static void one_miss(struct gos_stack *stack, uint32_t round)
{
    if (stack->native_count < 8 || stack->python_count < 8)
        return;
    uint32_t step = round / 64 % 8;
    uintptr_t held = stack->native[round % 8];
    stack->native[round % 8] = stack->native[(round + step) % 8];
    stack->native[(round + step) % 8] = held;
    struct gos_python_ref *ref = &stack->python[round * 7 % stack->python_count];
    struct gos_python_ref first = stack->python[0];
    stack->python[0] = *ref;
    *ref = first;
    stack->native_hash = stack->python_hash = 0;
    gos_site_intern(stack);
}

static void (*measured(char what))(struct gos_stack *, uint32_t)
{
    switch (what) {
    case 'c':
        return one_capture;
    case 'p':
        return one_python;
    case 's':
        return one_site;
    case 'h':
        return one_hit;
    default:
        return one_miss;
    }
}

/*
 * Picoseconds for one of: (c)apture, (p)ython frames alone, (s)ite: capture and
 * intern, intern (h)it, intern (m)iss.
 */
uint64_t probe_time(const char *what, uint32_t repeat, uint32_t *native, uint32_t *python)
{
    struct gos_stack stack;
    void (*one)(struct gos_stack *, uint32_t) = measured(*what);

    gos_unwind_capture(&stack, GOS_FRAME_MAX);
    *native = stack.native_count;
    *python = stack.python_count;
    uint64_t start = now_ns();
    for (uint32_t i = 0; i < repeat; i++)
        one(&stack, i);
    return (now_ns() - start) * 1000 / repeat;
}
