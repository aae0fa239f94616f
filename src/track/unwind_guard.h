/*
 * A look ahead of libgcc's unwinder, which believes what it finds: where the
 * stack is damaged, its next step would read from wherever a damaged register
 * or return address points to.  libunwind looks by itself.
 */
#ifndef GOS_TRACK_UNWIND_GUARD_H
#define GOS_TRACK_UNWIND_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pages that a walk has found to be readable, the last few. */
#define GOS_GUARD_PAGES 4

struct gos_unwind_guard {
    uintptr_t pages[GOS_GUARD_PAGES];
    uint32_t next_page;
};

/* The function descriptions of libgcc; `function` gets the function's first address. */
typedef const void *gos_find_description(uintptr_t address, uintptr_t *function);

/* A frame that the unwinder has arrived at. */
struct gos_guarded_frame {
    uintptr_t address;                          /* where it goes on */
    bool is_address_of_next;                    /* a signal's frame: not behind a call */
    uintptr_t stack;                            /* its stack pointer */
    uintptr_t (*value)(void *context, int reg); /* of the registers that functions preserve */
    void *context;
};

/* Can the unwinder step on to this frame's caller?  Hook context: yes.  x86-64 only. */
bool gos_unwind_guard_allows(struct gos_unwind_guard *guard, const struct gos_guarded_frame *frame,
                             gos_find_description *find);

#endif
