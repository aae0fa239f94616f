/*
 * The line on stderr about a failure: what failed, the verdict, and the report
 * where one was written.  Hook context.
 */
#ifndef GOS_SHIM_NOTICE_H
#define GOS_SHIM_NOTICE_H

#include <stdbool.h>

#include "../report/report.h"

/* is_substituted: the call was given other memory than it asked for. */
void gos_notice(const struct gos_report *report, bool is_substituted);

/* A framework's answer made another verdict of it; the line of before named what was known then. */
void gos_notice_changed(const struct gos_report *report);

#endif
