/*
 * A libcudart.so.13 that does nothing but log, like row_driver.c, and whose
 * every function calls the driver's on the way, with what the host makes ready
 * for that: the library sees the name that the programmer wrote only through it.
 */
#include "declarations.h"
#include "rows.h"

enum row {
#define RUNTIME(symbol, role) ROW_##symbol,
#include "../../src/cuda/entrypoints.def"
    ROW_COUNT
};

#define EXPORT __attribute__((visibility("default")))

EXPORT struct row_script runtime_script;
EXPORT struct row_call runtime_calls[ROW_COUNT];

static int answer(int row, const uint64_t *words)
{
    row_call_note(&runtime_calls[row], &runtime_script, words, true);
    if (runtime_script.below != NULL)
        runtime_script.below();
    for (int i = 0; runtime_script.result == 0 && i < WRITE_MAX; i++)
        if (runtime_script.writes[i].to != NULL)
            *runtime_script.writes[i].to = runtime_script.writes[i].value;
    return runtime_script.result;
}

#define WORD_PARAMETER(n) uint64_t w##n,
#define WORD_ARGUMENT(n) w##n,
#define RUNTIME(symbol, role)                                                                      \
    EXPORT int log_##symbol(WORDS(WORD_PARAMETER) uint64_t w15) __asm__(#symbol);                  \
    int log_##symbol(WORDS(WORD_PARAMETER) uint64_t w15)                                           \
    {                                                                                              \
        return answer(ROW_##symbol, (uint64_t[SLOT_COUNT]){WORDS(WORD_ARGUMENT) w15});             \
    }
#include "../../src/cuda/entrypoints.def"
