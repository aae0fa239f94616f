/*
 * Copying memory that another thread of the host may be about to unmap, such
 * as its environment while it calls setenv: the kernel copies and reports a
 * bad address as an error, where a load would end the process.
 */
#ifndef GOS_OBSERVE_PEEK_H
#define GOS_OBSERVE_PEEK_H

#include <stdbool.h>
#include <stddef.h>

/* All of it, at most a page, or false.  Hook context: yes. */
bool gos_peek(const void *address, void *copy, size_t bytes);

/*
 * The text at the address, cut at bytes − 1 and terminated.  False when its
 * beginning cannot be read.
 */
bool gos_peek_text(const char *address, char *copy, size_t bytes);

#endif
