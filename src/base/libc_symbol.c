#include "libc_symbol.h"

#include <link.h>
#include <stdbool.h>

#include "elf_image.h"

/* strcmp and strrchr are among what can be replaced. */
static bool ends_with_name(const char *path, const char *name)
{
    const char *at = path;

    for (; *path; path++)
        if (*path == '/')
            at = path + 1;
    while (*at && *at == *name)
        at++, name++;
    return *at == *name;
}

/*
 * The list has no lock.  It is read once or twice, when the process starts or
 * soon after, and the C library stands near its head.
 */
static uintptr_t find_in(const char *library, const char *name)
{
    for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next) {
        struct gos_elf_image image;

        if (ends_with_name(object->l_name, library))
            return gos_elf_image_make(object->l_addr, object->l_ld, &image)
                       ? gos_elf_symbol(&image, name)
                       : 0;
    }
    return 0;
}

uintptr_t gos_libc_symbol(const char *name)
{
    uintptr_t found = find_in("libc.so.6", name);

    return found ? found : find_in("libdl.so.2", name);
}
