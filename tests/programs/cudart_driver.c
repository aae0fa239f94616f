/*
 * A libcuda.so.1 that has every row of entrypoints.def, in every ABI, and does
 * nothing: enough for a real libcudart to do all its look-ups before it learns
 * that there is no device.  What it asks for by other names gets one function.
 */
#include <cuda.h>
#include <stddef.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

typedef CUresult (*stub)(void);

/* Other names in C, so that cuda.h's prototypes do not matter. */
#define STUB_RESOLVE(symbol)
#define STUB(symbol)                                                                               \
    VISIBLE CUresult stub_##symbol(void) __asm__(#symbol);                                         \
    CUresult stub_##symbol(void)                                                                   \
    {                                                                                              \
        return CUDA_ERROR_NO_DEVICE;                                                               \
    }
#define STUB_ALLOC(symbol) STUB(symbol)
#define STUB_FREE(symbol) STUB(symbol)
#define STUB_POOL(symbol) STUB(symbol)
#define STUB_CONTEXT(symbol) STUB(symbol)
#define STUB_KEEP(symbol) STUB(symbol)
#define STUB_WATCH(symbol) STUB(symbol)
#define STUB_TELL(symbol) STUB(symbol)
#define DRIVER(symbol, base, version, suffix, role) STUB_##role(symbol)
#include "../../src/cuda/entrypoints.def"

CUresult stub_cuGetProcAddress(const char *, void **, int, cuuint64_t) __asm__("cuGetProcAddress");
CUresult stub_cuGetProcAddress_v2(const char *, void **, int, cuuint64_t,
                                  CUdriverProcAddressQueryResult *) __asm__("cuGetProcAddress_v2");
CUresult stub_cuDriverGetVersion(int *) __asm__("cuDriverGetVersion");
CUresult stub_anything(void) __asm__("cuAnything");

static const struct row {
    const char *base;
    int version;
    const char *suffix;
    stub function;
} rows[] = {
#define DRIVER(symbol, base, version, suffix, role)                                                \
    {#base, version, #suffix, (stub)(void (*)(void))stub_##symbol},
#include "../../src/cuda/entrypoints.def"
    {"cuDriverGetVersion", 2020, "", (stub)(void (*)(void))stub_cuDriverGetVersion},
};

VISIBLE CUresult stub_cuDriverGetVersion(int *version)
{
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

VISIBLE CUresult stub_anything(void)
{
    return CUDA_ERROR_NO_DEVICE;
}

static const struct row *newest(const char *base, int version, const char *suffix)
{
    const struct row *best = NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].base, base) == 0 && strcmp(rows[i].suffix, suffix) == 0 &&
            rows[i].version <= version && (best == NULL || rows[i].version > best->version))
            best = &rows[i];
    return best;
}

static void *resolve(const char *base, int version, cuuint64_t flags)
{
    const struct row *row = NULL;

    if (base[0] == '\0')
        return NULL;
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        row = newest(base, version, "_ptsz");
    if (row == NULL)
        row = newest(base, version, "");
    return row != NULL ? (void *)row->function : (void *)stub_anything;
}

VISIBLE CUresult stub_cuGetProcAddress(const char *base, void **out, int version, cuuint64_t flags)
{
    void *found = resolve(base, version, flags);

    if (found == NULL)
        return CUDA_ERROR_NOT_FOUND;
    *out = found;
    return CUDA_SUCCESS;
}

VISIBLE CUresult stub_cuGetProcAddress_v2(const char *base, void **out, int version,
                                          cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    *out = resolve(base, version, flags);
    if (status != NULL)
        *status = *out != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}
