/* The version that reports and the command name. */
#ifndef GOS_REPORT_VERSION_H
#define GOS_REPORT_VERSION_H

#ifndef GOS_VERSION
#define GOS_VERSION "1.0.0"
#endif

#endif
