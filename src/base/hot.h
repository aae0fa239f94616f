/*
 * What every allocation and free goes through.  Beside a real driver the caches
 * are half cold when a hook runs, so what it needs lies close together.
 *
 * GOS_HOT: functions, one after the other instead of file by file.
 *
 * GOS_READ_MOSTLY: variables that each call reads and hardly any writes.  What is
 * written more often than a program makes streams, captures or limits does not
 * belong here.
 *
 * Both are for definitions.
 */
#ifndef GOS_BASE_HOT_H
#define GOS_BASE_HOT_H

#define GOS_HOT __attribute__((hot))
#define GOS_READ_MOSTLY __attribute__((section("gos_read_mostly")))

#endif
