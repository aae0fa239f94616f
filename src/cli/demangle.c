#include "demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*demangler)(const char *mangled, char *buffer, size_t *length, int *status);

/* A symbol of a data pointer type cannot be cast to a function; its bytes can be copied. */
static demangler find_demangler(void)
{
    demangler function = NULL;
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static const char *demangled(demangler demangle, struct gos_scratch *scratch, const char *symbol)
{
    int status = 0;
    char *name = demangle(symbol, NULL, NULL, &status);
    const char *copy = name ? gos_scratch_copy(scratch, name, strlen(name)) : NULL;
    free(name);
    return copy ? copy : symbol;
}

static void demangle_stack(demangler demangle, struct gos_scratch *scratch,
                           struct gos_shown_stack *stack)
{
    for (uint32_t i = 0; i < stack->native_count; i++) {
        const char *symbol = stack->native[i].symbol;
        if (symbol && strncmp(symbol, "_Z", 2) == 0)
            stack->native[i].symbol = demangled(demangle, scratch, symbol);
    }
}

void gos_demangle(struct gos_loaded *loaded)
{
    struct gos_stacks *stacks = &loaded->document.stacks;
    demangler demangle = find_demangler();
    for (size_t i = 0; demangle && i < stacks->count; i++)
        demangle_stack(demangle, &loaded->scratch, &stacks->stacks[i]);
}
