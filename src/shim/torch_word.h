/*
 * torch's own word (torch_word.def) on its way through us: what it says is
 * noted, then its real function runs as if we were not there.
 *
 * The real function is the caller's own, or that of the library that it needs
 * or that lies beside it (two torches in one process each get theirs), found in
 * the loaded library's own symbols.  Another preload library that defines the same names is passed
 * by: what torch tells is for its profiler.
 */
#ifndef GOS_SHIM_TORCH_WORD_H
#define GOS_SHIM_TORCH_WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "word.h"

/* torch's last totals of a device: in blocks, in segments.  False: it told none. */
bool gos_torch_totals(int device, uint64_t *allocated_bytes, uint64_t *reserved_bytes);

/* What we export under that name, or NULL.  Allowed in dlsym. */
void *gos_torch_wrapper(const char *name);

/*
 * Around the host's dlclose: which functions were found is forgotten, since
 * other code may lie at their addresses afterwards.
 */
void gos_torch_unload_begin(void);
void gos_torch_unload_end(void);

void gos_torch_reset_after_fork(void);

#endif
