/*
 * Where a failing request comes from: the library that asked, what it called,
 * and the host's own line above it.  Failures of one origin are one story;
 * another library, another operation or another line is another one, whatever
 * the sizes.
 */
#ifndef GOS_SHIM_ORIGIN_H
#define GOS_SHIM_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "../observe/evidence.h"

/*
 * Of a Python program the newest lines of its own code, of others the call in
 * the library that asked, or above a framework, and its callers.  torch's
 * allocator and its own word about it are one origin.  0: no stack is known.
 * Hook context; some microseconds.
 */
uint64_t gos_origin_of(const struct gos_request *request);

/* Was it asked by torch's allocator (libc10_cuda), which says when it gives up? */
bool gos_origin_is_torch_allocator(const struct gos_request *request);

#endif
