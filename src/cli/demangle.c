#include "demangle.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*demangler)(const char *mangled, char *buffer, size_t *length, int *status);

/* A symbol of a data pointer type cannot be cast to a function; its bytes can be copied. */
static demangler find_demangler(void)
{
    static demangler function;
    static bool is_looked_up;
    if (is_looked_up)
        return function;
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&function, &symbol, sizeof function);
    is_looked_up = true;
    return function;
}

const char *gos_demangled(struct gos_scratch *scratch, const char *symbol)
{
    int status = 0;
    demangler demangle = strncmp(symbol, "_Z", 2) == 0 ? find_demangler() : NULL;
    char *name = demangle ? demangle(symbol, NULL, NULL, &status) : NULL;
    const char *copy = name ? gos_scratch_copy(scratch, name, strlen(name)) : NULL;
    free(name);
    return copy ? copy : symbol;
}

static void demangle_stack(struct gos_scratch *scratch, struct gos_shown_stack *stack)
{
    for (uint32_t i = 0; i < stack->native_count; i++) {
        const char *symbol = stack->native[i].symbol;
        if (symbol)
            stack->native[i].symbol = gos_demangled(scratch, symbol);
    }
}

void gos_demangle(struct gos_loaded *loaded)
{
    struct gos_stacks *stacks = &loaded->document.stacks;
    for (size_t i = 0; i < stacks->count; i++)
        demangle_stack(&loaded->scratch, &stacks->stacks[i]);
}
