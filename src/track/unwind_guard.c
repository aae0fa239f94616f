#include "unwind_guard.h"

#include <string.h>

#include "../base/readable.h"
#include "cfa_rule.h"

#define PAGE_BYTES 4096u

/* What libgcc compares with the code of a signal's return where it has no description. */
#define CODE_BYTES 9

/* DWARF's numbers of rbx, rbp, rsp and r12 to r15. */
enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R15 = 15 };

static bool is_known(const struct gos_unwind_guard *guard, uintptr_t page)
{
    for (size_t i = 0; i < GOS_GUARD_PAGES; i++)
        if (guard->pages[i] == page)
            return page != 0;
    return false;
}

static bool is_readable(struct gos_unwind_guard *guard, uintptr_t address)
{
    uintptr_t page = address / PAGE_BYTES;
    if (is_known(guard, page))
        return true;
    if (!gos_is_readable(page * PAGE_BYTES))
        return false;
    guard->pages[guard->next_page++ % GOS_GUARD_PAGES] = page;
    return true;
}

/* The bytes are few: they lie in one page or in two. */
static bool range_is_readable(struct gos_unwind_guard *guard, uintptr_t address, size_t bytes)
{
    return address + bytes > address && is_readable(guard, address) &&
           is_readable(guard, address + bytes - 1);
}

static bool read_word(struct gos_unwind_guard *guard, uintptr_t place, uintptr_t *word)
{
    if (!range_is_readable(guard, place, sizeof *word))
        return false;
    memcpy(word, (const void *)place, sizeof *word);
    return true;
}

/* The other registers are not kept by every function, and libgcc cannot tell them. */
static bool base_of(const struct gos_guarded_frame *frame, uint32_t reg, uintptr_t *base)
{
    bool is_preserved = reg == RBX || reg == RBP || (reg >= R12 && reg <= R15);
    if (reg == RSP)
        *base = frame->stack;
    else if (is_preserved)
        *base = frame->value(frame->context, (int)reg);
    return reg == RSP || is_preserved;
}

static bool find_end(struct gos_unwind_guard *guard, const struct gos_guarded_frame *frame,
                     const struct gos_cfa_rule *rule, uintptr_t *end)
{
    if (!base_of(frame, rule->reg, end))
        return false;
    *end += (uintptr_t)rule->offset;
    return rule->is_in_frame || read_word(guard, *end, end);
}

/* Where nothing describes the code, libgcc looks at the code itself. */
static bool code_is_readable(struct gos_unwind_guard *guard, uintptr_t address,
                             gos_find_description *find)
{
    uintptr_t function;
    return !address || find(address - 1, &function) ||
           range_is_readable(guard, address, CODE_BYTES);
}

static bool caller_is_sound(struct gos_unwind_guard *guard, const struct gos_cfa_rule *rule,
                            uintptr_t end, gos_find_description *find)
{
    uintptr_t address;
    if (rule->lowest < 0 && !is_readable(guard, end + (uintptr_t)rule->lowest))
        return false;
    if (!rule->has_return) /* the outermost, or a signal's: its registers are in this frame */
        return true;
    return read_word(guard, end + (uintptr_t)rule->return_offset, &address) &&
           code_is_readable(guard, address, find);
}

bool gos_unwind_guard_allows(struct gos_unwind_guard *guard, const struct gos_guarded_frame *frame,
                             gos_find_description *find)
{
    uintptr_t function, end;
    struct gos_cfa_rule rule;
    const void *fde = find(frame->address - !frame->is_address_of_next, &function);
    if (!fde) /* libgcc goes by the code, which was looked at one frame further in */
        return true;
    if (!gos_cfa_rule_find(fde, function, frame->address + frame->is_address_of_next, &rule) ||
        !find_end(guard, frame, &rule, &end))
        return false;
    bool is_further_out = end > frame->stack || frame->is_address_of_next;
    return is_further_out && caller_is_sound(guard, &rule, end, find);
}
