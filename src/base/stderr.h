/*
 * Writing to standard error without the signals that it may bring: whoever
 * reads it may have gone, and the host would be ended by a line of ours.
 *
 * Hook context: yes.
 */
#ifndef GOS_BASE_STDERR_H
#define GOS_BASE_STDERR_H

#include <stddef.h>

/* 0 or -errno.  SIGPIPE and SIGXFSZ of this write do not reach the host; others' do. */
int gos_stderr_write(const char *data, size_t bytes);

#endif
