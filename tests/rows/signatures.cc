/*
 * The parameters of every row, read from its declaration by the compiler: the
 * one thing that C cannot say about a function.  Data only; no C++ runtime.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

extern "C" {
#include "declarations.h"
#include "rows.h"
}

template <class T> constexpr bool is_pointer = false;
template <class T> constexpr bool is_pointer<T *> = true;

template <class R, class... A> constexpr row_signature signature(R (*)(A...))
{
    return {sizeof...(A), {{sizeof(A), is_pointer<A>}...}};
}

extern "C" {
extern const row_signature row_signatures[];
const row_signature row_signatures[] = {
#define DRIVER(symbol, base, version, suffix, role) signature(decltype (&symbol){}),
#include "../../src/cuda/entrypoints.def"
#define RUNTIME(symbol, role) signature(decltype (&symbol){}),
#include "../../src/cuda/entrypoints.def"
};
}
