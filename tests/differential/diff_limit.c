#include "diff_limit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    unsigned long long seed;
    unsigned index;
    char name[32];
    time_t begun;
} now;

static time_t seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void give_up(int signal_number)
{
    char line[160];

    (void)signal_number;
    int length =
        snprintf(line, sizeof(line), "gave up at the limit: seed %llu step %u %s, for %ld s\n",
                 now.seed, now.index, now.name, (long)(seconds() - now.begun));
    _exit(write(STDERR_FILENO, line, (size_t)length) == length ? DIFF_LIMIT_STATUS : 1);
}

void diff_limit_start(void)
{
    const char *limit = getenv("DIFFERENTIAL_LIMIT");

    now.begun = seconds();
    signal(SIGALRM, give_up);
    alarm(limit != NULL ? (unsigned)atoi(limit) : 0);
}

void diff_limit_step(uint64_t seed, unsigned index, const char *name)
{
    now.seed = seed;
    now.index = index;
    snprintf(now.name, sizeof(now.name), "%s", name);
    now.begun = seconds();
}
