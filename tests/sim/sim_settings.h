/*
 * Settings of the simulated GPU, read from GPUSIM_* when the library is loaded
 * and constant afterwards.  README.md has the table for users.
 *
 * Sizes are given in MiB in the environment and kept in bytes here.  A value
 * that is not a number counts as not given: a simulator must start anywhere.
 */
#ifndef SIM_SETTINGS_H
#define SIM_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_MIB (UINT64_C(1) << 20)
#define SIM_DEVICES_MAX 16
#define SIM_FAILURES_MAX 16

/* What NVML shows of the processes on a device. */
enum sim_nvml_view {
    SIM_NVML_FULL,       /* every process */
    SIM_NVML_OWN,        /* only the caller, as inside a container */
    SIM_NVML_EMPTY,      /* success and no process */
    SIM_NVML_FORBIDDEN,  /* no permission */
    SIM_NVML_ABSENT,     /* NVML cannot be initialised */
    SIM_NVML_NUMBERLESS, /* pids, and no memory of theirs, as on WSL */
    SIM_NVML_MIG,        /* an instance of a partitioned card: its own uuid, no list */
};

/* GPUSIM_FAIL: make calls of one entry point return a result of choice. */
struct sim_failure {
    char symbol[64];
    int result;
    uint64_t nth; /* 1-based; 0 means every call */
};

struct sim_settings {
    uint64_t memory_bytes;   /* GPUSIM_MEMORY, what cuMemGetInfo calls total */
    uint64_t context_bytes;  /* GPUSIM_CONTEXT, cost of one context */
    uint64_t reserved_bytes; /* GPUSIM_RESERVED, seen by NVML only */
    uint64_t module_bytes;   /* GPUSIM_MODULE, cost of a function's first launch */
    uint64_t local_bytes;    /* GPUSIM_LOCAL, local memory of each kernel's threads */
    uint64_t host_bytes;     /* GPUSIM_HOST_MEMORY, 0: whatever is available */
    uint64_t call_us;        /* GPUSIM_CALL_TIME, how long each call takes at least */
    uint64_t refuse_us;      /* GPUSIM_REFUSE_TIME, how long nobody else is served by a refusal */
    bool free_waits;         /* GPUSIM_FREE_WAITS */
    int device_count;        /* GPUSIM_DEVICES */
    int driver_version;      /* GPUSIM_DRIVER_VERSION */
    bool zero_cost;          /* GPUSIM_ZERO_COST */
    bool integrated;         /* GPUSIM_INTEGRATED */
    int mps_server_pid;      /* GPUSIM_MPS_SERVER, 0: no MPS */
    bool eager_loading;      /* CUDA_MODULE_LOADING=EAGER */
    enum sim_nvml_view nvml; /* GPUSIM_NVML */
    const char *state_path;  /* GPUSIM_STATE, NULL: private to the process */
    const char *trace_path;  /* GPUSIM_TRACE */
    struct sim_failure kill; /* GPUSIM_KILL; symbol "" none, result unused */
    unsigned failure_count;
    struct sim_failure failures[SIM_FAILURES_MAX];
};

extern struct sim_settings sim_settings;

/* Idempotent; the library's constructor calls it. */
void sim_settings_load(void);

#endif
