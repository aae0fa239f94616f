/*
 * Tests of the simulated GPU, through the driver's exported names.
 *
 * Each test runs in a child process of its own with its own settings, because
 * the simulator reads them when it is loaded.  The same tests run on a real
 * driver (the one that dlopen finds): those that need a setting are skipped
 * there, the others say whether the simulator tells the truth.
 */
#ifndef SIM_SELFTEST_H
#define SIM_SELFTEST_H

#include <cuda.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim_newer.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

struct api {
#define DRIVER_FUNCTION(name) __typeof__(&name) name;
#include "selftest_driver.def"
#undef DRIVER_FUNCTION
    uint64_t (*gpusim_calls)(const char *symbol); /* NULL: a real driver */
    void *library;
};

extern struct api cu;

/* In a child: say what is wrong and go on, so that one run shows every difference. */
#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
#define CHECK_EQUAL(actual, expected)                                                              \
    check_equal((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__)

void check(bool is_true, const char *text, const char *file, int line);
void check_equal(long long actual, long long expected, const char *text, const char *file,
                 int line);

/* Loads the driver, initialises it, makes device 0's primary context current. */
CUcontext start_driver(void);
/* Only loads it. */
void load_driver(void);
bool is_simulated(void);

uint64_t free_bytes(void);
CUstream make_stream(void);
CUmemoryPool default_pool(uint64_t threshold_bytes);
uint64_t pool_bytes(CUmemoryPool pool, CUmemPool_attribute attribute);
/* Keeps a stream busy, as a kernel would. */
void occupy(CUstream stream, unsigned milliseconds);
CUdeviceptr take(uint64_t bytes);
CUdeviceptr take_async(uint64_t bytes, CUstream stream);

/*
 * Runs `body` in a child with the given "NAME=value" settings (NULL-terminated)
 * and fails the current cmocka test if a check failed or the child died.  With
 * settings, the test is skipped on a real driver.
 */
void run_child(void (*body)(void), ...) __attribute__((sentinel));

/* The tests, by file. */
#define TEST_GROUP(name)                                                                           \
    extern const struct CMUnitTest name[];                                                         \
    extern const size_t name##_count
TEST_GROUP(memory_tests);
TEST_GROUP(pool_tests);
TEST_GROUP(capture_tests);
TEST_GROUP(process_tests);
TEST_GROUP(runtime_tests);

#endif
