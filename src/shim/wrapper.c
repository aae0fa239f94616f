#include "wrapper.h"

#include <stddef.h>

#include "../cuda/entrypoint.h"
#include "cudart.h"

/* Linked with -Bsymbolic-functions: these are our functions, whatever comes before us. */
static void *const wrappers[GOS_ENTRYPOINT_COUNT] = {
#define DRIVER(symbol, base, version, suffix, role) [GOS_EP_##symbol] = (void *)symbol,
#define RUNTIME(symbol, role) [GOS_EP_##symbol] = (void *)symbol,
#include "../cuda/entrypoints.def"
};

void *gos_wrapper(int row)
{
    return row >= 0 && row < GOS_ENTRYPOINT_COUNT ? wrappers[row] : NULL;
}
