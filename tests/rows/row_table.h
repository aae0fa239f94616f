/* The rows as the host sees them, and how it got at their functions (row_reach.c). */
#ifndef ROW_TABLE_H
#define ROW_TABLE_H

#include "rows.h"

enum row {
#define DRIVER(symbol, base, version, suffix, role) ROW_##symbol,
#include "../../src/cuda/entrypoints.def"
    DRIVER_COUNT,
    BEFORE_RUNTIME = DRIVER_COUNT - 1,
#define RUNTIME(symbol, role) ROW_##symbol,
#include "../../src/cuda/entrypoints.def"
    ROW_COUNT
};

struct row_facts {
    const char *symbol;
    const char *role;
    const char *base;
    int version;
    bool per_thread;
};
extern const struct row_facts rows[ROW_COUNT];

int row_of(const char *symbol); /* or -1 */

#define WORD_TYPE(n) uint64_t,
typedef int (*any_function)(WORDS(WORD_TYPE) uint64_t);

/* What was reached, and how many from the first: the driver's come before the runtime's. */
extern any_function functions[ROW_COUNT];
extern const int reached_count;

/* driver: a handle of dlopen. */
void reach(void *driver);

/* As dlsym; ends the program when there is none. */
void *must_find(void *library, const char *symbol);

#endif
