/* Whether memory may be read or written, asked of the kernel, which does not end the process for
 * it. */
#ifndef GOS_BASE_READABLE_H
#define GOS_BASE_READABLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * May the eight bytes at this address be read now?  Another thread may unmap
 * them in the next moment.  Hook context: yes; one system call that changes
 * nothing.
 */
bool gos_is_readable(uintptr_t address);

/*
 * May the eight bytes at this address be written now?  They are: what is there
 * is lost.  For pages of a file, which somebody else may have cut short.
 */
bool gos_is_writable(void *address);

#endif
