/*
 * Reaches every row's function in one of the ways in which programs do:
 * -DLOAD_LINKED, -DLOAD_DLSYM or -DLOAD_RESOLVER.  Only the first reaches the
 * runtime's rows, too.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "declarations.h"
#include "row_table.h"

const struct row_facts rows[ROW_COUNT] = {
#define DRIVER(symbol, base, version, suffix, role)                                                \
    {#symbol, #role, #base, version, sizeof(#suffix) > 1},
#include "../../src/cuda/entrypoints.def"
#define RUNTIME(symbol, role) {#symbol, #role, NULL, 0, false},
#include "../../src/cuda/entrypoints.def"
};

int row_of(const char *symbol)
{
    for (int row = 0; row < ROW_COUNT; row++)
        if (strcmp(rows[row].symbol, symbol) == 0)
            return row;
    return -1;
}

any_function functions[ROW_COUNT];

void *must_find(void *library, const char *symbol)
{
    void *found = library != NULL ? dlsym(library, symbol) : NULL;

    if (found == NULL) {
        printf("no %s\n", symbol);
        exit(1);
    }
    return found;
}

#if defined(LOAD_LINKED)

static void *const linked[] = {
#define DRIVER(symbol, base, version, suffix, role) (void *)symbol,
#include "../../src/cuda/entrypoints.def"
#define RUNTIME(symbol, role) (void *)symbol,
#include "../../src/cuda/entrypoints.def"
};

const int reached_count = ROW_COUNT;

void reach(void *driver)
{
    (void)driver;
    memcpy(functions, linked, sizeof linked);
}

#elif defined(LOAD_DLSYM)

const int reached_count = DRIVER_COUNT;

void reach(void *driver)
{
    for (int row = 0; row < DRIVER_COUNT; row++)
        functions[row] = (any_function)must_find(driver, rows[row].symbol);
}

#elif defined(LOAD_RESOLVER)

const int reached_count = DRIVER_COUNT;

void reach(void *driver)
{
    __typeof__(&cuGetProcAddress_v2) resolve = must_find(driver, "cuGetProcAddress_v2");
    CUdriverProcAddressQueryResult status;

    for (int row = 0; row < DRIVER_COUNT; row++) {
        cuuint64_t flags = rows[row].per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                                : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
        resolve(rows[row].base, (void **)&functions[row], rows[row].version, flags, &status);
    }
}

#endif
