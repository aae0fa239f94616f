#include "unwinder.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "../base/hot.h"
#include "../cuda/loader.h"
#include "unwind_guard.h"

/* The part of the C++ ABI's unwinding interface that is used, under our own names. */
struct unwind_context;
enum { UNWIND_GO_ON = 0, UNWIND_STOP = 5 };
typedef int unwind_visit(struct unwind_context *context, void *arg);

/*
 * libunwind's, which has no header here.  Its cursor has 127 words on x86-64
 * and a machine context is a ucontext_t.
 */
struct cursor {
    uint64_t words[256];
};
struct save_place {
    int type;
    uint64_t address;
    uint64_t spare[6];
};
enum { SAVED_IN_MEMORY = 1 };
enum { REGISTER_STACK = 7, REGISTER_ADDRESS = 16 };

/* What libgcc tells with a function's description. */
struct bases {
    void *text;
    void *data;
    void *function;
};
static const int saved_registers[GOS_UNWINDER_SAVED] = {3, 6, 12, 13, 14, 15};

static struct {
    int (*walk)(void **addresses, int max);
    /* The next five are for visiting. */
    int (*context)(ucontext_t *context);
    int (*start)(struct cursor *cursor, ucontext_t *context);
    int (*step)(struct cursor *cursor);
    int (*value)(struct cursor *cursor, int reg, uint64_t *value);
    int (*place)(struct cursor *cursor, int reg, struct save_place *place);
    int (*is_signal)(struct cursor *cursor);
} libunwind;

static struct {
    int (*visit_all)(unwind_visit *visit, void *arg);
    uintptr_t (*address)(struct unwind_context *context);
    /* The next three are for visiting and, with the fourth, for looking ahead. */
    uintptr_t (*address_and_kind)(struct unwind_context *context, int *is_signal);
    uintptr_t (*stack)(struct unwind_context *context);
    uintptr_t (*value)(struct unwind_context *context, int reg);
    const void *(*describe)(void *address, struct bases *bases);
} libgcc;

/* Whose registers and frames are described above; what every instruction's address is divided by.
 */
#if defined(__x86_64__)
enum { KNOWS_MACHINE = 1, CODE_ALIGNMENT = 1 };
#else
enum { KNOWS_MACHINE = 0, CODE_ALIGNMENT = 4 };
#endif

static GOS_READ_MOSTLY _Atomic int which = GOS_UNWINDER_NONE;
static _Atomic bool can_visit;
static bool can_look_ahead; /* set before libgcc is published in `which` */
static atomic_flag opened = ATOMIC_FLAG_INIT;

/* --- opening --------------------------------------------------------------------------------- */

/* RTLD_LOCAL: both libraries export the host's own exception handling, which must stay as it is. */
static void *open_privately(const char *name)
{
    return gos_loader.open(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static bool find(void *handle, const char *name, void *function)
{
    void *found = gos_loader.symbol(handle, name);
    *(void **)function = found;
    return found != NULL;
}

static bool find_visiting(void *handle)
{
    return find(handle, "_Ux86_64_getcontext", &libunwind.context) &&
           find(handle, "_ULx86_64_init_local", &libunwind.start) &&
           find(handle, "_ULx86_64_step", &libunwind.step) &&
           find(handle, "_ULx86_64_get_reg", &libunwind.value) &&
           find(handle, "_ULx86_64_get_save_loc", &libunwind.place) &&
           find(handle, "_ULx86_64_is_signal_frame", &libunwind.is_signal);
}

static void set_can_visit(bool can)
{
    atomic_store_explicit(&can_visit, KNOWS_MACHINE && can, memory_order_release);
}

static bool open_libunwind(void)
{
    void *handle = open_privately("libunwind.so.8");
    if (!handle || !find(handle, "unw_backtrace", &libunwind.walk))
        return false;
    set_can_visit(find_visiting(handle));
    return true;
}

static bool find_visiting_by_libgcc(void *handle)
{
    return find(handle, "_Unwind_GetIPInfo", &libgcc.address_and_kind) &&
           find(handle, "_Unwind_GetCFA", &libgcc.stack) &&
           find(handle, "_Unwind_GetGR", &libgcc.value);
}

static bool open_libgcc(void)
{
    void *handle = open_privately("libgcc_s.so.1");
    if (!handle || !find(handle, "_Unwind_Backtrace", &libgcc.visit_all) ||
        !find(handle, "_Unwind_GetIP", &libgcc.address))
        return false;
    bool can = find_visiting_by_libgcc(handle);
    can_look_ahead = KNOWS_MACHINE && can && find(handle, "_Unwind_Find_FDE", &libgcc.describe);
    set_can_visit(can);
    return true;
}

static bool go_on(const struct gos_unwinder_frame *frame, void *arg)
{
    (void)frame;
    (void)arg;
    return true;
}

/* The first walk sets up what the libraries keep; later ones mostly read. */
static void warm_up(void)
{
    uintptr_t addresses[GOS_UNWINDER_MAX];
    gos_unwinder_walk(addresses, GOS_UNWINDER_MAX);
    gos_unwinder_visit(go_on, NULL);
}

void gos_unwinder_open(void)
{
    if (atomic_flag_test_and_set(&opened))
        return;
    enum gos_unwinder found = GOS_UNWINDER_NONE;
    if (open_libunwind())
        found = GOS_UNWINDER_LIBUNWIND;
    else if (open_libgcc())
        found = GOS_UNWINDER_LIBGCC;
    atomic_store_explicit(&which, found, memory_order_release);
    warm_up();
}

enum gos_unwinder gos_unwinder_which(void)
{
    return (enum gos_unwinder)atomic_load_explicit(&which, memory_order_acquire);
}

/* --- looking ahead -----------------------------------------------------------------------------
 */

static const void *describe(uintptr_t address, uintptr_t *function)
{
    struct bases bases = {0};
    const void *description = libgcc.describe((void *)address, &bases);
    *function = (uintptr_t)bases.function;
    return description;
}

static uintptr_t value_in(void *context, int reg)
{
    return libgcc.value(context, reg);
}

/* What libgcc does if it may go on from here. */
static int go_on_from(struct unwind_context *context, struct gos_unwind_guard *guard)
{
    struct gos_guarded_frame frame = {.value = value_in, .context = context};
    int is_signal = 0;
    if (!can_look_ahead)
        return UNWIND_GO_ON;
    frame.address = libgcc.address_and_kind(context, &is_signal);
    frame.is_address_of_next = is_signal != 0;
    frame.stack = libgcc.stack(context);
    return gos_unwind_guard_allows(guard, &frame, describe) ? UNWIND_GO_ON : UNWIND_STOP;
}

/* --- addresses only -------------------------------------------------------------------------- */

struct addresses {
    uintptr_t *addresses;
    size_t count;
    size_t max;
    struct gos_unwind_guard guard;
};

static int take_address(struct unwind_context *context, void *arg)
{
    struct addresses *taken = arg;
    uintptr_t address = libgcc.address(context);
    if (taken->count == taken->max || !address)
        return UNWIND_STOP;
    taken->addresses[taken->count++] = address;
    return go_on_from(context, &taken->guard);
}

static size_t walk_by_libgcc(uintptr_t *addresses, size_t max)
{
    struct addresses taken = {.addresses = addresses, .max = max};
    libgcc.visit_all(take_address, &taken);
    return taken.count;
}

/* libunwind 1.6 on aarch64 tells the last byte of the call instead of where it returns to. */
static void round_up_to_instructions(uintptr_t *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        addresses[i] = (addresses[i] + CODE_ALIGNMENT - 1) & ~(uintptr_t)(CODE_ALIGNMENT - 1);
}

/* libunwind may end with the null address of the outermost frame's caller. */
static size_t walk_by_libunwind(uintptr_t *addresses, size_t max)
{
    int result = libunwind.walk((void **)addresses, (int)max);
    size_t count = result > 0 ? (size_t)result : 0;
    while (count && !addresses[count - 1])
        count--;
    round_up_to_instructions(addresses, count);
    return count;
}

size_t gos_unwinder_walk(uintptr_t *addresses, size_t max)
{
    size_t bounded = max < GOS_UNWINDER_MAX ? max : GOS_UNWINDER_MAX;
    switch (gos_unwinder_which()) {
    case GOS_UNWINDER_LIBUNWIND:
        return walk_by_libunwind(addresses, bounded);
    case GOS_UNWINDER_LIBGCC:
        return walk_by_libgcc(addresses, bounded);
    case GOS_UNWINDER_NONE:
        break;
    }
    return 0;
}

/* --- frames with their places ---------------------------------------------------------------- */

static uintptr_t value_of(struct cursor *cursor, int reg)
{
    uint64_t value = 0;
    return libunwind.value(cursor, reg, &value) == 0 ? (uintptr_t)value : 0;
}

static uintptr_t place_of(struct cursor *cursor, int reg)
{
    struct save_place place = {.type = 0};
    if (libunwind.place(cursor, reg, &place) != 0 || place.type != SAVED_IN_MEMORY)
        return 0;
    return (uintptr_t)place.address;
}

static void read_frame(struct cursor *cursor, struct gos_unwinder_frame *frame)
{
    frame->address = value_of(cursor, REGISTER_ADDRESS);
    frame->stack = value_of(cursor, REGISTER_STACK);
    frame->is_signal = libunwind.is_signal(cursor) > 0;
    for (size_t i = 0; i < GOS_UNWINDER_SAVED; i++) {
        frame->saved[i].value = value_of(cursor, saved_registers[i]);
        frame->saved[i].place = place_of(cursor, saved_registers[i]);
    }
}

static void visit_by_libunwind(gos_unwinder_visitor *visit, void *arg)
{
    struct cursor cursor;
    ucontext_t context;
    struct gos_unwinder_frame frame;
    if (libunwind.context(&context) != 0 || libunwind.start(&cursor, &context) != 0)
        return;
    size_t count = 0;
    do
        read_frame(&cursor, &frame);
    while (visit(&frame, arg) && ++count < GOS_UNWINDER_MAX && libunwind.step(&cursor) > 0);
}

/*
 * libgcc tells a register's value but not its place.  Its context has always
 * begun with an array of those places; an entry is believed only if it lies
 * on the stack of the frames inside this one and holds the value that
 * libgcc's own function tells.
 */
static uintptr_t place_in_context(const struct unwind_context *context, int reg, uintptr_t stack,
                                  uintptr_t value)
{
    uintptr_t place, held;
    memcpy(&place, (const char *)context + (size_t)reg * sizeof place, sizeof place);
    if (place % sizeof place != 0 || place < (uintptr_t)&held || place >= stack)
        return 0;
    memcpy(&held, (const void *)place, sizeof held);
    return held == value ? place : 0;
}

struct visiting {
    gos_unwinder_visitor *visit;
    void *arg;
    size_t count;
    struct gos_unwind_guard guard;
};

static int visit_one(struct unwind_context *context, void *arg)
{
    struct visiting *visiting = arg;
    struct gos_unwinder_frame frame = {.stack = libgcc.stack(context)};
    int is_signal = 0;
    frame.address = libgcc.address_and_kind(context, &is_signal);
    frame.is_signal = is_signal != 0;
    for (size_t i = 0; i < GOS_UNWINDER_SAVED; i++) {
        uintptr_t value = libgcc.value(context, saved_registers[i]);
        frame.saved[i].value = value;
        frame.saved[i].place = place_in_context(context, saved_registers[i], frame.stack, value);
    }
    bool goes_on = frame.address && ++visiting->count < GOS_UNWINDER_MAX &&
                   visiting->visit(&frame, visiting->arg);
    return goes_on ? go_on_from(context, &visiting->guard) : UNWIND_STOP;
}

static void visit_by_libgcc(gos_unwinder_visitor *visit, void *arg)
{
    struct visiting visiting = {.visit = visit, .arg = arg};
    libgcc.visit_all(visit_one, &visiting);
}

void gos_unwinder_visit(gos_unwinder_visitor *visit, void *arg)
{
    if (!atomic_load_explicit(&can_visit, memory_order_acquire))
        return;
    if (gos_unwinder_which() == GOS_UNWINDER_LIBUNWIND)
        visit_by_libunwind(visit, arg);
    else
        visit_by_libgcc(visit, arg);
}

void gos_unwinder_reset_after_fork(void)
{
    atomic_store(&which, GOS_UNWINDER_NONE);
    atomic_store(&can_visit, false);
}
