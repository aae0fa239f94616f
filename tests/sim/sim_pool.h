/*
 * Pools of stream-ordered memory.
 *
 * A pool is a long stretch of address space, cut into segments: in use, or free
 * since some ticket of some stream.  Behind it lies device memory in chunks of
 * 32 MiB; a chunk without a segment in use can move to where it is needed.
 * As measured on an H200:
 *
 *   reserved  grows and shrinks by whole chunks
 *   used      counts bytes as asked for, and is not lowered by cuMemFree of a
 *             pool's pointer (only by cuMemFreeAsync)
 *   reuse     by the same stream at once; by another one when the free is done;
 *             when the device is full, by making it wait for the free
 *   giving    back to the device: only chunks whose frees the host has observed;
 *   back      above the release threshold at each synchronization, all of them
 *             when another request finds the device full
 *
 * Runs under the driver lock.
 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim_range.h"

#define SIM_CHUNK_BYTES (UINT64_C(32) << 20)

struct CUmemPoolHandle_st {
    uint32_t magic;
    int device;
    bool on_host;
    bool doomed; /* destroyed while memory was in use */
    uint64_t base, space_bytes;
    uint64_t tail; /* highest offset ever handed out */
    uint64_t threshold_bytes;
    uint64_t used_bytes, used_high_bytes;
    uint64_t reserved_bytes, reserved_high_bytes;
    uint64_t live_count;
    int reuse[3]; /* the three reuse policies, stored and returned */
    struct sim_chunk *chunks;
    struct sim_segment *first, *last; /* by address */
    struct sim_segment *free_list;
    CUmemoryPool next;
};

CUmemoryPool sim_pool_make(int device);
void sim_pool_destroy(CUmemoryPool pool);
bool sim_pool_is_live(CUmemoryPool pool);

/* CUDA_ERROR_OUT_OF_MEMORY leaves everything as it was, but for memory given back. */
CUresult sim_pool_take(CUmemoryPool pool, CUstream stream, uint64_t bytes, uint64_t *address);
/* In stream order. */
void sim_pool_free(struct sim_range *range, CUstream stream);
/* cuMemFree: at once, and observed. */
void sim_pool_free_now(struct sim_range *range);

/* Gives observed chunks back until no more than `keep_bytes` are reserved. */
void sim_pool_trim(CUmemoryPool pool, uint64_t keep_bytes);

/* After the host observed something: release thresholds and pending frees. */
void sim_pools_settle(void);
/* The device is full: all that is idle and observed goes back. */
void sim_pools_give_back(int device);

#endif
