/*
 * Lines on stderr, for people.  Each begins with "gpuoomshim: ", is written
 * with one write(2), and at most GOS_LOG_CAP lines of a process come out, then
 * one that says so.  Never stdout.  Hook context: allowed; takes no lock.
 *
 * Until gos_options_load has run, only errors come out.  A line longer than
 * 1000 bytes is cut and ends in dots.
 */
#ifndef GOS_BASE_LOG_H
#define GOS_BASE_LOG_H

enum gos_log_level { GOS_LOG_ERROR, GOS_LOG_NOTICE, GOS_LOG_INFO, GOS_LOG_DEBUG };

#define GOS_LOG_CAP 100

__attribute__((format(printf, 2, 3))) void gos_log(enum gos_log_level level, const char *format,
                                                   ...);

#endif
