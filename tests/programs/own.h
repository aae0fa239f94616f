/*
 * For hosts that keep books of their own: what they hold on each device, beside
 * what the library says.  tests/books.py compares the two.
 */
#ifndef OWN_H
#define OWN_H

#include "host.h"

/* At a moment with a name, letters and digits only. */
static inline void tell_books(const char *moment, int device, size_t own_bytes)
{
    if (gpuoomshim_live_bytes == NULL)
        return;
    fprintf(stderr, "shim: own_%s=%zu\n", moment, own_bytes);
    fprintf(stderr, "shim: live_%s=%" PRIu64 "\n", moment, gpuoomshim_live_bytes(device));
}

/* At a moment, what a snapshot has to say of one kind of memory. */
static inline void tell_kind(const char *folder, const char *moment, const char *kind,
                             size_t own_bytes)
{
    char prefix[512];

    if (gpuoomshim_snapshot == NULL)
        return;
    snprintf(prefix, sizeof(prefix), "%s/%s", folder, moment);
    if (gpuoomshim_snapshot(prefix) == 0)
        fprintf(stderr, "shim: kind_%s_%s=%zu\n", moment, kind, own_bytes);
}

static inline CUmemLocation on_device(int device)
{
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

static inline CUmemAllocationProp pinned_on(int device)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = on_device(device)};
}

#endif
