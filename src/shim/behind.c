#include "behind.h"

#include <dlfcn.h>
#include <stddef.h>

#include "../base/libc_symbol.h"

typedef void *dlsym_function(void *, const char *);

/* libc's dlsym is asked with RTLD_NEXT, and sees that it is us who ask. */
void *gos_behind_us(_Atomic(void *) *slot, const char *name)
{
    void *found = atomic_load_explicit(slot, memory_order_acquire);

    if (found)
        return found;
    dlsym_function *libc_dlsym = (dlsym_function *)gos_libc_symbol("dlsym");
    found = libc_dlsym ? libc_dlsym(RTLD_NEXT, name) : NULL;
    if (!found)
        found = (void *)gos_libc_symbol(name);
    atomic_store_explicit(slot, found, memory_order_release);
    return found;
}
