/*
 * Another process that holds the device's memory: the host itself, started again
 * as "PROGRAM hold SECONDS MIB".
 */
#ifndef HOLDER_H
#define HOLDER_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static inline size_t share_of_holder(long mib)
{
    if (mib == 0)
        return scaled(free_bytes(), 10240);
    return mib > 0 ? (size_t)mib * MIB : free_bytes() - (size_t)-mib * MIB;
}

/* For so long, 0: for ever; mib 0: 10,240 of the written scenario, negative: all but so much. */
__attribute__((noreturn)) static inline void hold(unsigned seconds, long mib)
{
    CUdeviceptr held;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "memory-holder");
    open_device();
    MUST(driver.mem_alloc(&held, share_of_holder(mib)));
    printf("holding\n");
    fflush(stdout);
    alarm(seconds);
    for (;;)
        pause();
}

/* Returns the holder's pid once it holds its memory. */
static inline pid_t start_holder_of(const char *mib, const char *seconds)
{
    char line[64];
    int output[2];

    if (pipe(output) != 0)
        exit(1);
    pid_t holder = fork();
    if (holder == 0) {
        dup2(output[1], STDOUT_FILENO);
        close(output[0]);
        execl("/proc/self/exe", "holder", "hold", seconds, mib, (char *)NULL);
        _exit(127);
    }
    close(output[1]);
    FILE *lines = fdopen(output[0], "r");
    if (lines == NULL || fgets(line, sizeof(line), lines) == NULL ||
        strcmp(line, "holding\n") != 0) {
        printf("outcome: the holder did not start\n");
        exit(1);
    }
    fclose(lines);
    return holder;
}

static inline pid_t start_holder(const char *seconds)
{
    return start_holder_of("0", seconds);
}

static inline void stop_holder(pid_t holder)
{
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
}

/* What the program was started for, if it is the holder; else it returns. */
static inline void hold_if_told(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "hold") == 0)
        hold(count > 2 ? (unsigned)atoi(words[2]) : 0, count > 3 ? atol(words[3]) : 0);
}

#endif
