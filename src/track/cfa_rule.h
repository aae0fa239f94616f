/*
 * Where a function's frame ends, from its unwind data (.eh_frame: DWARF 5,
 * section 6.4, and the Linux Standard Base's additions to it).
 *
 * Hook context: yes; reads only the unwind data.
 */
#ifndef GOS_TRACK_CFA_RULE_H
#define GOS_TRACK_CFA_RULE_H

#include <stdbool.h>
#include <stdint.h>

struct gos_cfa_rule {
    uint32_t reg;     /* DWARF number: the frame ends at this register's value plus the offset */
    int64_t offset;   /* bytes */
    bool is_in_frame; /* no: at the address that is kept at that place */
    /* Relative to the end.  Where the lowest of the registers is kept that have a fixed place: */
    int64_t lowest;
    /* Where the return address is kept; only if has_return. */
    int64_t return_offset;
    bool has_return;
};

/*
 * The rule that holds in a function at `address`; for a return address the
 * caller passes it as it is.  `fde` is the function's description, `start` the
 * function's first address.  False when the data says something else than
 * compilers do for the frames of calls.
 */
bool gos_cfa_rule_find(const void *fde, uintptr_t start, uintptr_t address,
                       struct gos_cfa_rule *rule);

#endif
