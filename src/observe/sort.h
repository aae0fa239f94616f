/*
 * Sorting in place, without memory of its own and without recursion: libc's
 * qsort may call malloc.  Hook context: yes.
 */
#ifndef GOS_OBSERVE_SORT_H
#define GOS_OBSERVE_SORT_H

#include <stdbool.h>
#include <stddef.h>

#include "evidence.h"

#define GOS_SORT_ITEM_MAX 64

/* Heap sort, not stable; items of at most GOS_SORT_ITEM_MAX bytes. */
void gos_sort_heap(void *items, size_t count, size_t item_bytes,
                   bool (*before)(const void *, const void *));

/* Descending by gos_site_use_bytes; equal ones by site, kind and device, so that the order is
 * fixed. */
void gos_sort_uses(struct gos_site_use *uses, size_t count);

/*
 * Ascending by address.  With a spare array of the same length by radix, one
 * pass for each byte in which the addresses differ; with NULL by heap.
 */
void gos_sort_smalls(struct gos_small *smalls, struct gos_small *spare, size_t count);

#endif
