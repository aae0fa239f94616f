/*
 * A driver and an NVML for the observer: a few devices, a stack of current
 * contexts, streams that are busy or not.  Every call is counted, and the nth
 * can be made to fail.
 */
#ifndef GOS_TESTS_OBSERVE_FAKE_GPU_H
#define GOS_TESTS_OBSERVE_FAKE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../src/cuda/driver.h"
#include "../../src/cuda/nvml.h"

#define FAKE_DEVICES 3
#define FAKE_CONTEXT(device) (0xC0000000ul + 0x1000ul * (unsigned)(device))

struct fake_gpu {
    int device_count;
    bool primary_active[FAKE_DEVICES];
    size_t free_bytes[FAKE_DEVICES], total_bytes[FAKE_DEVICES];
    uint64_t graph_reserved[FAKE_DEVICES];

    uint64_t stack[8]; /* of current contexts */
    int depth;
    CUstreamCaptureMode mode;

    uint64_t busy_stream;             /* cuStreamQuery says "not ready" */
    uint64_t queried_in;              /* context that was current at the last query */
    CUstreamCaptureMode queried_mode; /* at the last query of a stream or pool */
    unsigned memory_calls, query_calls, query_thread_calls, pool_calls;
    uint64_t pool_reserved, pool_used; /* of every pool */

    bool integrated, mps, mig;
    int nvml_status, nvml_list_status;
    struct gos_nvml_memory nvml_memory;
    struct gos_nvml_process nvml_processes[8];
    size_t nvml_process_count;

    unsigned fail_nth, calls; /* of driver calls that may fail */
    bool failed;
};
extern struct fake_gpu fake_gpu;

/* Two devices of 16 GiB with contexts on device 0, which is current; gos_driver is filled. */
void fake_gpu_install(void);

#endif
