/*
 * Which process a file belongs to, so that another one can tell whether it has
 * ended: a number alone is given out again, and means nothing elsewhere.
 */
#ifndef GOS_REPORT_OWNER_H
#define GOS_REPORT_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/* What is not known is 0 or "". */
struct gos_owner {
    int32_t pid;
    uint32_t unused;
    uint64_t start_ticks;   /* since the machine's start, by /proc */
    uint64_t pid_namespace; /* its inode */
    char boot_id[40];       /* of the machine's start */
};

enum gos_owner_state {
    GOS_OWNER_UNKNOWN, /* of another machine, start or container, or too little is known */
    GOS_OWNER_RUNS,
    GOS_OWNER_ENDED
};

/* This process.  Reads four small files.  Hook context: yes, as the rest. */
void gos_owner_of_self(struct gos_owner *owner);

/* boot_id must be terminated. */
enum gos_owner_state gos_owner_look(const struct gos_owner *owner);

/* Is there a process with this number here that has not ended? */
bool gos_owner_pid_runs(int pid);

#endif
