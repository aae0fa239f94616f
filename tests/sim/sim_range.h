/*
 * Everything that has an address: one record per allocation, reservation or
 * registration, found by any address inside it.
 *
 * Addresses come from mmap without reserving memory, so a device of any size
 * costs nothing until it is written to, copies really move data, and limits on
 * the address space strike where they strike a real driver.
 *
 * All of this runs under the driver lock.
 */
#ifndef SIM_RANGE_H
#define SIM_RANGE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_BLOCK_BYTES (UINT64_C(2) << 20) /* granularity of device memory [H200] */

enum sim_kind {
    SIM_LINEAR,      /* cuMemAlloc, whole device blocks */
    SIM_PIECE,       /* cuMemAlloc up to 1 MiB, part of a device block */
    SIM_POOLED,      /* cuMemAllocAsync */
    SIM_GRAPH_OWNED, /* allocation node of a graph */
    SIM_RESERVED,    /* cuMemAddressReserve */
    SIM_MANAGED,     /* cuMemAllocManaged */
    SIM_HOST,        /* cuMemHostAlloc */
    SIM_REGISTERED,  /* cuMemHostRegister */
    SIM_OPENED,      /* cuIpcOpenMemHandle */
};

struct sim_range {
    struct sim_range *left, *right; /* treap, ordered by base */
    uint32_t priority;
    enum sim_kind kind;
    uint64_t base;
    uint64_t bytes;        /* as asked for */
    uint64_t mapped_bytes; /* as mapped or taken from the device */
    uint64_t id;           /* unique for the life of the process */
    int device;
    unsigned flags;
    CUcontext context; /* NULL where the allocation outlives contexts */
    void *owner;       /* block, segment or node, by kind */
};

/* NULL when there is no metadata memory; `base` must not be inside another range. */
struct sim_range *sim_range_add(enum sim_kind kind, uint64_t base, uint64_t bytes, int device);
void sim_range_remove(struct sim_range *range);

/* The range that contains the address, or NULL. */
struct sim_range *sim_range_find(uint64_t address);
/* The range that begins there, or NULL: what a free function accepts. */
struct sim_range *sim_range_at(uint64_t base);
/* Some range of the context, or NULL; to free a context's memory one by one. */
struct sim_range *sim_range_of_context(CUcontext context);
/* Every range, in order of address. */
void sim_range_each(void (*visit)(const struct sim_range *range, void *argument), void *argument);

/* Address space, aligned to device blocks; 0 when the system refuses. */
uint64_t sim_space_map(uint64_t bytes, bool accessible);
void sim_space_unmap(uint64_t base, uint64_t bytes);
/* Makes the pages of a part of it usable or not, dropping their contents in the latter case. */
bool sim_space_open(uint64_t base, uint64_t bytes);
void sim_space_close(uint64_t base, uint64_t bytes);
/* Gives the host's pages behind it back. */
void sim_space_drop(uint64_t base, uint64_t bytes);

static inline uint64_t sim_round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

#endif
