#include "relaxed.h"

#include "driver.h"

static bool exchange(CUstreamCaptureMode *mode)
{
    return gos_driver.cuThreadExchangeStreamCaptureMode &&
           gos_driver.cuThreadExchangeStreamCaptureMode(mode) == CUDA_SUCCESS;
}

void gos_relaxed_begin(struct gos_relaxed *relaxed)
{
    relaxed->before = CU_STREAM_CAPTURE_MODE_RELAXED;
    relaxed->is_on = exchange(&relaxed->before);
}

void gos_relaxed_end(struct gos_relaxed *relaxed)
{
    if (relaxed->is_on)
        exchange(&relaxed->before);
    relaxed->is_on = false;
}
