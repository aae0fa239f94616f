/*
 * Loops that make the n-th call of one member of the OS table fail, for n = 1,
 * 2, … until a round meets no failure any more: then every call of the code
 * under test has failed once.
 *
 * Each round runs in a child of its own, since permanent tables stay as they
 * are after a failure.  The child exits with ROUND_*.
 */
#ifndef NTH_CALL_H
#define NTH_CALL_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUND_LIMIT 100000u

static unsigned calls_until_failure; /* 0: none fails (any more) */
static bool failure_met;

/* True when this call is the one to fail. */
static inline bool fails_now(void)
{
    if (calls_until_failure == 0 || --calls_until_failure != 0)
        return false;
    failure_met = true;
    return true;
}

enum { ROUND_FAILURE_MET = 10, ROUND_NO_FAILURE = 11 };

/* In a child: round(arg) returns NULL, or what is wrong. */
static inline int run_round(const char *(*round)(void *), void *arg, unsigned n)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        calls_until_failure = n;
        const char *wrong = round(arg);
        if (wrong != NULL)
            fprintf(stderr, "# call %u failing: %s\n", n, wrong);
        _exit(wrong != NULL ? 1 : failure_met ? ROUND_FAILURE_MET : ROUND_NO_FAILURE);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void fail_each_call(const char *(*round)(void *), void *arg)
{
    unsigned n = 1;
    int ended;
    while ((ended = run_round(round, arg, n)) == ROUND_FAILURE_MET && n < ROUND_LIMIT)
        n++;
    assert_int_equal(ended, ROUND_NO_FAILURE);
    assert_true(n > 1); /* at least one call was there to fail */
}

#endif
