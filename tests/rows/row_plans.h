/*
 * What rows do beyond passing through: which call makes a record, where it
 * says the address, and which call ends it.
 */
#ifndef ROW_PLANS_H
#define ROW_PLANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rows.h"

enum row_place {
    ROW_OUT,      /* written through the first parameter */
    ROW_ARGUMENT, /* the first parameter itself */
    ROW_NODE,     /* written into the parameters of a graph node */
};

struct row_plan {
    const char *makes;
    enum row_place place;
    const char *frees; /* NULL: makes no record, but an object that is remembered */
    int parameter;     /* of the freeing call: the address */
    uint64_t handle;   /* not 0: physical memory with this handle is there before and after */
};

/* NULL when there is none. */
const struct row_plan *row_plan_making(const char *symbol);
const struct row_plan *row_plan_freeing(const char *symbol);

/* The function of the driver that a runtime's function comes to; NULL for the driver's own. */
const char *row_below(const char *symbol);

/* Calls that end all that was allocated in a context: their first argument, 0 for other rows. */
uint64_t row_ends_context(const char *symbol);

/* The call that has to follow, given the same first argument; NULL for most. */
const char *row_undone_by(const char *symbol);

/* Put what a hook reads into the buffers to which the parameters point. */
void row_dress(const char *symbol, unsigned char buffers[][ROW_BUFFER_BYTES]);

/* Where the real function is to write the address; NULL for ROW_ARGUMENT. */
uint64_t *row_out_parameter(const struct row_plan *plan, unsigned char buffers[][ROW_BUFFER_BYTES]);

#endif
