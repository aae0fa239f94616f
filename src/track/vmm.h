/*
 * Physical handles and their mappings.  A handle's memory is alive while it
 * has a reference (create, retain) or a mapping, in address space or in an
 * array; the registry's record (kind PHYSICAL, in handle space) lives exactly as
 * long.  Each mapping in address space has a record of its own (kind MAPPING,
 * not on the device's books) at its address.
 *
 * Handles that we did not see created are ignored.
 *
 * Hook context: yes; takes the VMM lock, then at most one shard lock.
 */
#ifndef GOS_TRACK_VMM_H
#define GOS_TRACK_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "registry.h"

/*
 * After cuMemCreate (kind PHYSICAL) or cuMulticastCreate (kind HANDLE: owns no
 * bytes): one reference.  The registry record is added here.
 */
void gos_vmm_created(const struct gos_allocation *physical);
/*
 * After cuMemImportFromShareableHandle (kind HANDLE): as created, but a handle
 * that is known already, because this process exported it, gets a reference.
 */
void gos_vmm_imported(const struct gos_allocation *handle);
/* After cuMemRetainAllocationHandle of an address gave this handle: one reference more. */
void gos_vmm_retained(uint64_t handle);
/*
 * Around cuMemRelease: before the driver is called a reference is taken away;
 * true if with it the memory is gone and its record taken out.  `gone` is
 * always filled: it is what unrelease needs when the driver refuses, and its
 * values mean something only after true.
 */
bool gos_vmm_release(uint64_t handle, struct gos_allocation *gone);
void gos_vmm_unrelease(uint64_t handle, const struct gos_allocation *gone, bool was_last);

/* After cuMemMap: [address, +bytes) shows the handle. */
void gos_vmm_mapped(uint64_t address, uint64_t bytes, uint64_t handle, uint32_t site);
/* After cuMemUnmap of a range, which may hold several whole mappings. */
void gos_vmm_unmapped(uint64_t address, uint64_t bytes);

/*
 * Part of a sparse array or of one of deferred mapping (cuMemMapArrayAsync): a
 * box of texels of one level and layer, or a run of bytes of the mip tail.
 */
struct gos_vmm_part {
    uint64_t array; /* CUarray or CUmipmappedArray */
    bool is_tail;
    uint32_t level; /* 0 for a tail */
    uint32_t layer;
    uint64_t start[3]; /* of a tail only the first */
    uint64_t extent[3];
};
/* The part shows the handle, and nothing else any more. */
void gos_vmm_array_mapped(const struct gos_vmm_part *part, uint64_t handle);
/* What was mapped at once may be unmapped in pieces: with the last one the mapping is gone. */
void gos_vmm_array_unmapped(const struct gos_vmm_part *part);
void gos_vmm_array_destroyed(uint64_t array);
/* Arrays have ended otherwise: those that the registry does not know any more. */
void gos_vmm_arrays_ended(void);

struct gos_vmm_totals {
    uint64_t handle_count;
    uint64_t mapped_bytes;   /* physical memory that at least one mapping shows */
    uint64_t unmapped_bytes; /* physical memory that no mapping shows */
};
struct gos_vmm_totals gos_vmm_total(uint32_t device);
void gos_vmm_reset_after_fork(void);

#endif
