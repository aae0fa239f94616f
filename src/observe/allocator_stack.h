/*
 * Which frameworks' allocators the calling thread is inside of, and so perhaps
 * holds the lock of.  Frames of a framework outside its allocator do not
 * matter for device memory; a cache of pinned memory has locks elsewhere in it.
 */
#ifndef GOS_OBSERVE_ALLOCATOR_STACK_H
#define GOS_OBSERVE_ALLOCATOR_STACK_H

#include <stdbool.h>
#include <stdint.h>

struct gos_allocator_stack {
    bool is_known; /* the stack could be read; else nothing is certain */
    bool has_torch;
    bool has_cupy;
    bool has_torch_frame; /* anywhere in the framework's own libraries */
    bool has_cupy_frame;
    bool has_jax; /* anywhere in its plugin, whose parts cannot be told apart */
};

/* Walks the stack; site 0, or that of the failing call for its Python frames.  Hook context. */
struct gos_allocator_stack gos_allocator_stack(uint32_t site);

#endif
