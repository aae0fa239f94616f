/*
 * Hooks of entry points that are only watched, made from typed rows:
 *
 *     WATCHED(symbol, (parameters as in cuda.h), (the same as arguments))
 *
 * The parameters are the header's, and entrypoint.c compares each hook with
 * the type of its real function, so a row that is wrong does not compile.
 * A success costs one branch: what a failure needs is made after it.
 */
#ifndef GOS_SHIM_WATCHED_H
#define GOS_SHIM_WATCHED_H

#include "call.h"
#include "watched_need.h"

/* Is this call made to fail (GPUOOMSHIM_INJECT)? */
bool gos_watched_is_injected(enum gos_entrypoint entry);

/* The call of a watched entry point that has just failed; the stream it was for, or NULL. */
struct gos_call gos_watched_failed(enum gos_entrypoint entry, CUstream stream, bool injected);

/*
 * As WATCHED, for a call in stream order (stream NULL: for none), with what
 * tells its need (watched_need.h), a statement before the first attempt, one before each
 * other, and one after a success.  All may use the parameters.
 */
#define WATCHED_ABOUT(about, stream, symbol, parameters, arguments, first, again, then)            \
    CUresult CUDAAPI symbol parameters                                                             \
    {                                                                                              \
        first;                                                                                     \
        bool injected =                                                                            \
            __builtin_expect(gos_rehearsing, 0) && gos_watched_is_injected(GOS_EP_##symbol);       \
        CUresult result = injected ? CUDA_ERROR_OUT_OF_MEMORY : GOS_REAL(symbol) arguments;        \
                                                                                                   \
        if (__builtin_expect(result != CUDA_SUCCESS, 0)) {                                         \
            struct gos_watched watched = about;                                                    \
            struct gos_call call = gos_watched_failed(GOS_EP_##symbol, stream, injected);          \
            call.watched = &watched;                                                               \
            while (gos_call_again(&call, result)) {                                                \
                again;                                                                             \
                result = GOS_REAL(symbol) arguments;                                               \
            }                                                                                      \
            result = gos_call_done(&call, result);                                                 \
        }                                                                                          \
        if (__builtin_expect(result == CUDA_SUCCESS, 1))                                           \
            then;                                                                                  \
        return result;                                                                             \
    }

#define WATCHED_WITH(stream, symbol, parameters, arguments, first, again, then)                    \
    WATCHED_ABOUT(gos_watched_nothing(), stream, symbol, parameters, arguments, first, again, then)

#define WATCHED_LAUNCH(function, stream, symbol, parameters, arguments)                            \
    WATCHED_ABOUT(gos_watched_launch(function), stream, symbol, parameters, arguments, (void)0,    \
                  (void)0, (void)0)

#define WATCHED_THEN(stream, symbol, parameters, arguments, then)                                  \
    WATCHED_WITH(stream, symbol, parameters, arguments, (void)0, (void)0, then)

#define WATCHED_ON(stream, symbol, parameters, arguments)                                          \
    WATCHED_THEN(stream, symbol, parameters, arguments, (void)0)

#define WATCHED(symbol, parameters, arguments) WATCHED_ON(NULL, symbol, parameters, arguments)

#endif
