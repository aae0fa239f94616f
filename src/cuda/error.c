#include "error.h"

#include <stddef.h>

#include "cuda_types.h"

struct row {
    int code;
    bool is_sticky;
    const char *name;
    const char *text;
};

#define ROW(name, text)                                                                            \
    {                                                                                              \
        CUDA_ERROR_##name, false, "CUDA_ERROR_" #name, text                                        \
    }
#define STICKY(name, text)                                                                         \
    {                                                                                              \
        CUDA_ERROR_##name, true, "CUDA_ERROR_" #name, text                                         \
    }
/* Codes that headers of CUDA 12.0 do not have. */
#define NEWER(code, name, text)                                                                    \
    {                                                                                              \
        code, false, "CUDA_ERROR_" #name, text                                                     \
    }
#define NEWER_STICKY(code, name, text)                                                             \
    {                                                                                              \
        code, true, "CUDA_ERROR_" #name, text                                                      \
    }

static const struct row rows[] = {
    {CUDA_SUCCESS, false, "CUDA_SUCCESS", "success"},
    ROW(INVALID_VALUE, "invalid argument"),
    ROW(OUT_OF_MEMORY, "out of memory"),
    ROW(NOT_INITIALIZED, "driver not initialised"),
    ROW(DEINITIALIZED, "driver shutting down"),
    ROW(PROFILER_DISABLED, "profiler disabled"),
    ROW(PROFILER_NOT_INITIALIZED, "profiler not initialised"),
    ROW(PROFILER_ALREADY_STARTED, "profiler already started"),
    ROW(PROFILER_ALREADY_STOPPED, "profiler already stopped"),
    ROW(STUB_LIBRARY, "a stub was loaded instead of the driver"),
    NEWER(36, CALL_REQUIRES_NEWER_DRIVER, "the call needs a newer driver"),
    ROW(DEVICE_UNAVAILABLE, "device busy or unavailable"),
    ROW(NO_DEVICE, "no CUDA device"),
    ROW(INVALID_DEVICE, "no such device"),
    ROW(DEVICE_NOT_LICENSED, "device not licensed"),
    ROW(INVALID_IMAGE, "invalid kernel image"),
    ROW(INVALID_CONTEXT, "invalid context"),
    ROW(CONTEXT_ALREADY_CURRENT, "context already current"),
    ROW(MAP_FAILED, "mapping failed"),
    ROW(UNMAP_FAILED, "unmapping failed"),
    ROW(ARRAY_IS_MAPPED, "array is mapped"),
    ROW(ALREADY_MAPPED, "already mapped"),
    ROW(NO_BINARY_FOR_GPU, "no kernel image for this device"),
    ROW(ALREADY_ACQUIRED, "already acquired"),
    ROW(NOT_MAPPED, "not mapped"),
    ROW(NOT_MAPPED_AS_ARRAY, "not mapped as an array"),
    ROW(NOT_MAPPED_AS_POINTER, "not mapped as a pointer"),
    STICKY(ECC_UNCORRECTABLE, "uncorrectable ECC error"),
    ROW(UNSUPPORTED_LIMIT, "limit not supported"),
    ROW(CONTEXT_ALREADY_IN_USE, "context in use by another thread"),
    ROW(PEER_ACCESS_UNSUPPORTED, "no peer access between these devices"),
    ROW(INVALID_PTX, "PTX does not compile"),
    ROW(INVALID_GRAPHICS_CONTEXT, "invalid graphics context"),
    STICKY(NVLINK_UNCORRECTABLE, "uncorrectable NVLink error"),
    ROW(JIT_COMPILER_NOT_FOUND, "PTX compiler library not found"),
    ROW(UNSUPPORTED_PTX_VERSION, "PTX of a toolchain newer than the driver"),
    ROW(JIT_COMPILATION_DISABLED, "PTX compilation is disabled"),
    ROW(UNSUPPORTED_EXEC_AFFINITY, "execution affinity not supported"),
    NEWER(225, UNSUPPORTED_DEVSIDE_SYNC, "device code synchronizes, which is not supported"),
    NEWER_STICKY(226, CONTAINED, "a contained hardware or peer access error"),
    ROW(INVALID_SOURCE, "invalid kernel source"),
    ROW(FILE_NOT_FOUND, "file not found"),
    ROW(SHARED_OBJECT_SYMBOL_NOT_FOUND, "a shared object lacks a symbol"),
    ROW(SHARED_OBJECT_INIT_FAILED, "a shared object failed to initialise"),
    ROW(OPERATING_SYSTEM, "a call to the operating system failed"),
    ROW(INVALID_HANDLE, "invalid handle"),
    ROW(ILLEGAL_STATE, "object in the wrong state"),
    NEWER(402, LOSSY_QUERY, "the query would lose information"),
    ROW(NOT_FOUND, "symbol not found"),
    ROW(NOT_READY, "not complete yet"),
    STICKY(ILLEGAL_ADDRESS, "a kernel used an invalid address"),
    ROW(LAUNCH_OUT_OF_RESOURCES, "too many resources asked for a launch"),
    STICKY(LAUNCH_TIMEOUT, "a kernel ran too long"),
    ROW(LAUNCH_INCOMPATIBLE_TEXTURING, "incompatible texturing mode"),
    ROW(PEER_ACCESS_ALREADY_ENABLED, "peer access already enabled"),
    ROW(PEER_ACCESS_NOT_ENABLED, "peer access not enabled"),
    ROW(PRIMARY_CONTEXT_ACTIVE, "primary context already active"),
    ROW(CONTEXT_IS_DESTROYED, "context destroyed"),
    STICKY(ASSERT, "an assertion failed in a kernel"),
    ROW(TOO_MANY_PEERS, "too many peers"),
    ROW(HOST_MEMORY_ALREADY_REGISTERED, "host memory already registered"),
    ROW(HOST_MEMORY_NOT_REGISTERED, "host memory not registered"),
    STICKY(HARDWARE_STACK_ERROR, "a kernel's stack is corrupt or too large"),
    STICKY(ILLEGAL_INSTRUCTION, "a kernel met an illegal instruction"),
    STICKY(MISALIGNED_ADDRESS, "a kernel used a misaligned address"),
    STICKY(INVALID_ADDRESS_SPACE, "a kernel used the wrong address space"),
    STICKY(INVALID_PC, "a kernel's program counter left its range"),
    STICKY(LAUNCH_FAILED, "a kernel failed"),
    ROW(COOPERATIVE_LAUNCH_TOO_LARGE, "cooperative launch too large"),
    NEWER_STICKY(721, TENSOR_MEMORY_LEAK, "a kernel leaked tensor memory"),
    ROW(NOT_PERMITTED, "not permitted"),
    ROW(NOT_SUPPORTED, "not supported"),
    ROW(SYSTEM_NOT_READY, "system not ready (fabric manager or another service)"),
    ROW(SYSTEM_DRIVER_MISMATCH, "kernel driver and CUDA driver do not match"),
    ROW(COMPAT_NOT_SUPPORTED_ON_DEVICE, "forward compatibility not supported on this device"),
    ROW(MPS_CONNECTION_FAILED, "no connection to MPS"),
    ROW(MPS_RPC_FAILURE, "the conversation with the MPS server failed"),
    ROW(MPS_SERVER_NOT_READY, "MPS server not ready"),
    ROW(MPS_MAX_CLIENTS_REACHED, "too many MPS clients"),
    ROW(MPS_MAX_CONNECTIONS_REACHED, "too many MPS connections"),
    NEWER_STICKY(810, MPS_CLIENT_TERMINATED, "the MPS server ended this client"),
    NEWER(811, CDP_NOT_SUPPORTED, "dynamic parallelism not supported here"),
    NEWER(812, CDP_VERSION_MISMATCH, "versions of dynamic parallelism do not match"),
    ROW(STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is capturing"),
    ROW(STREAM_CAPTURE_INVALIDATED, "the capture was invalidated by an earlier error"),
    ROW(STREAM_CAPTURE_MERGE, "two captures would merge"),
    ROW(STREAM_CAPTURE_UNMATCHED, "the capture was not begun on this stream"),
    ROW(STREAM_CAPTURE_UNJOINED, "a fork of the capture was not joined"),
    ROW(STREAM_CAPTURE_ISOLATION, "the capture would depend on work outside"),
    ROW(STREAM_CAPTURE_IMPLICIT, "the capture would depend on the legacy stream"),
    ROW(CAPTURED_EVENT, "the event was recorded in a capture"),
    ROW(STREAM_CAPTURE_WRONG_THREAD, "the capture belongs to another thread"),
    ROW(TIMEOUT, "timed out"),
    ROW(GRAPH_EXEC_UPDATE_FAILURE, "the graph cannot be updated in place"),
    STICKY(EXTERNAL_DEVICE, "an error of another device"),
    ROW(INVALID_CLUSTER_SIZE, "invalid cluster size"),
    NEWER(913, FUNCTION_NOT_LOADED, "function not loaded"),
    NEWER(914, INVALID_RESOURCE_TYPE, "invalid resource type"),
    NEWER(915, INVALID_RESOURCE_CONFIGURATION, "invalid resource configuration"),
    NEWER(916, KEY_ROTATION, "encryption keys are being rotated"),
    ROW(UNKNOWN, "unknown error"),
};

static const struct row *find(int result)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].code == result)
            return &rows[i];
    }
    return NULL;
}

const char *gos_cuda_error_name(int result)
{
    const struct row *row = find(result);

    return row ? row->name : "CUDA_ERROR_<unknown>";
}

const char *gos_cuda_error_text(int result)
{
    const struct row *row = find(result);

    return row ? row->text : "an error that is not listed";
}

bool gos_cuda_error_is_sticky(int result)
{
    const struct row *row = find(result);

    return row && row->is_sticky;
}
