/*
 * Flush functions that programs register (gpuoomshim_register_flush): the
 * table, and calling them one by one on the helper thread.
 */
#ifndef GOS_RECOVER_FLUSH_CALLBACK_H
#define GOS_RECOVER_FLUSH_CALLBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOS_FLUSH_CALLBACK_MAX 16

typedef int gos_flush_function(void *arg, int device, uint64_t wanted_bytes);

/* As the public header says: 0, -EINVAL, -EEXIST, -ENOSPC, -ENOMEM. */
int gos_flush_callback_add(const char *name, gos_flush_function *flush, void *arg);
/* 0, -ENOENT, -EBUSY: it is running and did not end in time. */
int gos_flush_callback_remove(gos_flush_function *flush, void *arg);

/* Hook context. */
size_t gos_flush_callback_count(void);

/*
 * On the helper: the function at that place of the table (0 to
 * GOS_FLUSH_CALLBACK_MAX - 1).  False when there is none; else its name, which
 * is permanent, and what it returned.
 */
const char *gos_flush_callback_name(size_t at);
bool gos_flush_callback_call(size_t at, int device, uint64_t wanted_bytes, int *result);

void gos_flush_callback_reset_after_fork(void);

#endif
