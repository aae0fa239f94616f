/* Whether memory may be read: for addresses that come from damaged memory. */
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

#endif
