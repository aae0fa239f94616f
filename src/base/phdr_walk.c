#include "phdr_walk.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "elf_image.h"
#include "text.h"

typedef int phdr_iterate(gos_phdr_visit *visit, void *arg);

static uintptr_t find_in(const struct link_map *object, const char *name)
{
    struct gos_elf_image image;

    return gos_elf_image_make(object->l_addr, object->l_ld, &image) ? gos_elf_symbol(&image, name)
                                                                    : 0;
}

/*
 * The debugger's list is the one way to the C library that calls nothing.  It
 * has no lock, but this runs once, when the process starts or soon after, and
 * the C library stands near the list's head.
 */
static phdr_iterate *find_iterate(void)
{
    uintptr_t found = 0;

    for (const struct link_map *object = _r_debug.r_map; object && !found;
         object = object->l_next) {
        if (strcmp(gos_text_base_name(object->l_name), "libc.so.6") == 0)
            found = find_in(object, "dl_iterate_phdr");
    }
    return found ? (phdr_iterate *)found : dl_iterate_phdr;
}

int gos_phdr_walk(gos_phdr_visit *visit, void *arg)
{
    static _Atomic(phdr_iterate *) chosen;
    phdr_iterate *iterate = atomic_load_explicit(&chosen, memory_order_acquire);

    if (!iterate) {
        iterate = find_iterate();
        atomic_store_explicit(&chosen, iterate, memory_order_release);
    }
    return iterate(visit, arg);
}
