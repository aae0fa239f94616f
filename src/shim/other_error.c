#include "other_error.h"

#include <stdatomic.h>
#include <stddef.h>

#include "../base/log.h"
#include "../base/os.h"
#include "../cuda/cuda_types.h"
#include "../cuda/error.h"
#include "../track/table.h"
#include "state.h"

static _Atomic uint64_t told[GOS_OTHER_ERROR_MAX]; /* keys, the first come; 0: free */
static atomic_flag said_full = ATOMIC_FLAG_INIT;

bool gos_other_error_is_forked(void)
{
    return gos_shim_initialised_pid() != gos_os.pid();
}

/* What is not permitted as one type of handle, or for one place, is then asked for as another. */
static bool is_probed(enum gos_kind kind)
{
    return kind == GOS_KIND_PHYSICAL || kind == GOS_KIND_HANDLE || kind == GOS_KIND_IMPORTED ||
           kind == GOS_KIND_REGISTERED;
}

static bool ends_jobs(enum gos_kind kind, int result)
{
    if (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
        result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        return true;
    switch (result) {
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
        return true;
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_NOT_PERMITTED:
        return !is_probed(kind);
    default:
        return gos_cuda_error_is_sticky(result);
    }
}

bool gos_other_error_is_telling(enum gos_kind kind, int result)
{
    if (gos_other_error_is_forked() &&
        (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_OUT_OF_MEMORY))
        return true;
    return kind != GOS_KIND_NONE && ends_jobs(kind, result);
}

static uint64_t key_of(const struct gos_request *request)
{
    uint64_t key = gos_table_mix((uint64_t)request->result << 32 | request->requester_module);

    return gos_other_error_is_forked() ? 1 : (key ^ request->origin) | 1;
}

bool gos_other_error_is_first(const struct gos_request *request)
{
    uint64_t key = key_of(request);

    for (size_t i = 0; i < GOS_OTHER_ERROR_MAX; i++) {
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&told[i], &found, key))
            return true;
        if (found == key)
            return false;
    }
    if (!atomic_flag_test_and_set(&said_full))
        gos_log(GOS_LOG_NOTICE,
                "allocation calls gave errors other than out-of-memory %d times; no more of them "
                "are told",
                GOS_OTHER_ERROR_MAX);
    return false;
}

void gos_other_error_reset_after_fork(void)
{
    for (size_t i = 0; i < GOS_OTHER_ERROR_MAX; i++)
        atomic_store(&told[i], 0);
    atomic_flag_clear(&said_full);
}
