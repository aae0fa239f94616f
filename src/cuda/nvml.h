/*
 * NVML by dlopen with prototypes of our own (no header of it is packaged).
 * Opened once, from the cuInit hook, where the driver itself loads libraries;
 * afterwards only calls.  All calls are read only.
 *
 * Every getter: 0, or -ENOENT when NVML or the function is absent, -EACCES
 * when it refuses (MIG), -ENOTSUP when it says "not supported" (WSL), -EIO
 * otherwise.
 */
#ifndef GOS_CUDA_NVML_H
#define GOS_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOS_NVML_PROCESS_MAX 256

struct gos_nvml_memory {
    uint64_t total_bytes;
    uint64_t reserved_bytes; /* by driver and firmware; 0 if the library is too old to tell */
    uint64_t free_bytes;
    uint64_t used_bytes;
};

struct gos_nvml_process {
    uint32_t pid;
    uint64_t used_bytes; /* UINT64_MAX: not available */
};

/*
 * Loader context: calls dlopen, and may change errno.  0 or a negative errno as
 * above; -ENOENT also while another thread is opening it.  Looks once only.
 */
int gos_nvml_open(void);
/* uuid as the driver gives it, 16 bytes; the handle is opaque. */
int gos_nvml_device(const uint8_t uuid[16], void **handle);
int gos_nvml_memory(void *handle, struct gos_nvml_memory *memory);
/* Compute, graphics and MPS clients without repetition; *count in: room, out: filled. */
int gos_nvml_processes(void *handle, struct gos_nvml_process *processes, size_t *count);
/* Is the handle an instance of a partitioned card? */
int gos_nvml_is_mig(void *handle, bool *is_mig);
/* The window of the card's memory that the host and its peers see. */
int gos_nvml_bar1(void *handle, uint64_t *total_bytes, uint64_t *used_bytes);
int gos_nvml_driver_version(char *buffer, size_t bytes);
void gos_nvml_reset_after_fork(void);

#endif
