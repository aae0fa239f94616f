#include "loader.h"

#include <stddef.h>
#include <stdint.h>

#include "../base/module.h"

/* libdl.so.2 until glibc 2.33, the C library itself since. */
static uintptr_t find(const char *symbol)
{
    uintptr_t found = gos_module_symbol(gos_module_named("libc.so.6"), symbol);

    return found ? found : gos_module_symbol(gos_module_named("libdl.so.2"), symbol);
}

/* The host may ask dlerror about a failure of its own only before the next call, so ours goes. */
static void clear_error(void)
{
    char *(*error)(void) = (char *(*)(void))find("dlerror");

    if (error)
        error();
}

static void *open_library(const char *name, int flags)
{
    void *(*open)(const char *, int) = (void *(*)(const char *, int))find("dlopen");
    void *handle = open ? open(name, flags) : NULL;

    if (!handle)
        clear_error();
    return handle;
}

static void *find_symbol(void *handle, const char *name)
{
    void *(*symbol)(void *, const char *) = (void *(*)(void *, const char *))find("dlsym");
    void *found = symbol ? symbol(handle, name) : NULL;

    if (!found)
        clear_error();
    return found;
}

struct gos_loader gos_loader = {.open = open_library, .symbol = find_symbol};
