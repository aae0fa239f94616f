/* What exceptions of JAX and CuPy say of a refusal, in the words of several versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../../src/observe/refusal_words.h"

#define GIB ((uint64_t)1 << 30)

static void is_told(const char *type, const char *module, const char *message,
                    const char *framework, uint64_t bytes)
{
    struct gos_refusal_words words = {0};

    assert_true(gos_refusal_words(type, module, message, &words));
    assert_string_equal(words.framework, framework);
    assert_int_equal(words.asked_known, bytes != 0);
    if (bytes)
        assert_int_equal(words.asked_bytes, bytes);
}

static void is_none(const char *type, const char *module, const char *message)
{
    struct gos_refusal_words words;

    assert_false(gos_refusal_words(type, module, message, &words));
}

static void size_is_read_as_each_version_writes_it(void **state)
{
    (void)state;
    const char *old = "XlaRuntimeError", *older = "jaxlib.xla_extension";
    const char *new = "JaxRuntimeError", *newer = "jax.errors";

    is_told(old, older,
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes.", "jax",
            12 * GIB);
    is_told(new, newer, "RESOURCE_EXHAUSTED: Out of memory allocating 12884901888 bytes.", "jax",
            12 * GIB);
    is_told(new, newer,
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12.50GiB. [tf-1]", "jax",
            12 * GIB + GIB / 2);
    is_told(new, newer,
            "RESOURCE_EXHAUSTED: Failed to allocate request for 1.25GiB (1342177281B) on device "
            "ordinal 0",
            "jax", 1342177281u);
    is_told(new, newer, "RESOURCE_EXHAUSTED: Out of memory.", "jax", 0);
    is_told(new, newer, "RESOURCE_EXHAUSTED: Out of memory allocating 3 buffers.", "jax", 0);
    is_told(new, newer, "RESOURCE_EXHAUSTED: Out of memory allocating\n 12 bytes", "jax", 0);
}

static void limit_of_cupys_pool_is_told_and_no_other_refusal(void **state)
{
    (void)state;
    const char *type = "OutOfMemoryError", *module = "cupy.cuda.memory";

    is_told(type, module,
            "Out of memory allocating 1,024 bytes (allocated so far: 1,536 bytes, limit set to: "
            "2,048 bytes).",
            "cupy", 1024);
    is_none(type, module, "Out of memory allocating 1,024 bytes (allocated so far: 512 bytes).");
    is_none(type, module,
            "Out of memory allocating 1,024 bytes (allocated so far: 512 bytes, limit set to: "
            "2,048 bytes).");
    is_none(type, "torch", "CUDA out of memory. Tried to allocate 20.00 MiB.");
}

static void other_errors_are_none_of_ours(void **state)
{
    (void)state;
    is_none("JaxRuntimeError", "jax.errors", "INTERNAL: Out of memory");
    is_none("JaxRuntimeError", "jax.errors",
            "RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 266240");
    is_none("XlaRuntimeError", "mine", "RESOURCE_EXHAUSTED: Out of memory allocating 5 bytes");
    is_none("ValueError", "jax", "RESOURCE_EXHAUSTED: Out of memory allocating 5 bytes");
    is_none("OutOfMemoryError", "", "");
}

static void number_that_is_none_is_not_known(void **state)
{
    (void)state;
    is_told("JaxRuntimeError", "jax.errors",
            "RESOURCE_EXHAUSTED: Out of memory allocating 99999999999999999999999 GiB", "jax", 0);
    is_told("JaxRuntimeError", "jax.errors", "RESOURCE_EXHAUSTED: Out of memory allocating 7",
            "jax", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_is_read_as_each_version_writes_it),
        cmocka_unit_test(limit_of_cupys_pool_is_told_and_no_other_refusal),
        cmocka_unit_test(other_errors_are_none_of_ours),
        cmocka_unit_test(number_that_is_none_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
