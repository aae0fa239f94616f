#include "bench_driver.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct functions bench_functions[2];
CUstream bench_stream;
CUfunction bench_kernel;

static void *library;
static CUcontext context;

struct symbols {
    uintptr_t base;
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *hash;
};

static struct symbols read_symbols(const struct link_map *map)
{
    struct symbols symbols = {.base = map->l_addr};

    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols.table = (const ElfW(Sym) *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB)
            symbols.names = (const char *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_GNU_HASH)
            symbols.hash = (const uint32_t *)entry->d_un.d_ptr;
    }
    return symbols;
}

static void *in_chain(const struct symbols *symbols, uint32_t i, const char *name)
{
    const uint32_t *hash = symbols->hash;
    const uint32_t *buckets = (const uint32_t *)((const ElfW(Addr) *)(hash + 4) + hash[2]);
    const uint32_t *chains = buckets + hash[0];

    for (; i != 0; i++) {
        const ElfW(Sym) *symbol = &symbols->table[i];
        if (symbol->st_shndx != 0 && strcmp(symbols->names + symbol->st_name, name) == 0)
            return (void *)(symbols->base + symbol->st_value);
        if (chains[i - hash[1]] & 1) /* the chain's last */
            break;
    }
    return NULL;
}

/* The address in libcuda's own symbol table, which no hook can change. */
static void *bare(const char *name)
{
    struct link_map *map;
    void *found = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    struct symbols symbols = read_symbols(map);
    if (!symbols.table || !symbols.names || !symbols.hash)
        return NULL;
    const uint32_t *buckets =
        (const uint32_t *)((const ElfW(Addr) *)(symbols.hash + 4) + symbols.hash[2]);
    for (uint32_t bucket = 0; !found && bucket < symbols.hash[0]; bucket++)
        found = in_chain(&symbols, buckets[bucket], name);
    return found;
}

static void *given(const char *name)
{
    return dlsym(library, name);
}

static struct functions take(void *(*get)(const char *))
{
    return (struct functions){
        .alloc = (__typeof__(&cuMemAlloc))get("cuMemAlloc_v2"),
        .free = (__typeof__(&cuMemFree))get("cuMemFree_v2"),
        .alloc_async = (__typeof__(&cuMemAllocAsync))get("cuMemAllocAsync"),
        .free_async = (__typeof__(&cuMemFreeAsync))get("cuMemFreeAsync"),
        .launch = (__typeof__(&cuLaunchKernel))get("cuLaunchKernel"),
    };
}

static int failed(const char *what, CUresult result)
{
    fprintf(stderr, "bench: %s: %d\n", what, (int)result);
    return 1;
}

#define GIVEN_AS(name, symbol) __typeof__(&(name)) f_##name = (__typeof__(&(name)))given(symbol)

static int load_kernel(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                              ".visible .entry nothing() { ret; }\n";
    GIVEN_AS(cuModuleLoadData, "cuModuleLoadData");
    GIVEN_AS(cuModuleGetFunction, "cuModuleGetFunction");
    CUmodule module;
    CUresult result = f_cuModuleLoadData(&module, ptx);

    if (result == CUDA_SUCCESS)
        result = f_cuModuleGetFunction(&bench_kernel, module, "nothing");
    return result == CUDA_SUCCESS ? 0 : failed("kernel", result);
}

int bench_enter(void)
{
    GIVEN_AS(cuCtxSetCurrent, "cuCtxSetCurrent");
    CUresult result = f_cuCtxSetCurrent(context);

    return result == CUDA_SUCCESS ? 0 : failed("cuCtxSetCurrent", result);
}

static int open_context(void)
{
    GIVEN_AS(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    GIVEN_AS(cuStreamCreate, "cuStreamCreate");
    CUresult result = f_cuDevicePrimaryCtxRetain(&context, 0);

    if (result == CUDA_SUCCESS && bench_enter() != 0)
        return 1;
    if (result == CUDA_SUCCESS)
        result = f_cuStreamCreate(&bench_stream, CU_STREAM_NON_BLOCKING);
    return result == CUDA_SUCCESS ? 0 : failed("context", result);
}

int bench_start(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 77;
    GIVEN_AS(cuInit, "cuInit");
    if (f_cuInit(0) != CUDA_SUCCESS)
        return 77;
    bench_functions[BARE] = take(bare);
    bench_functions[GIVEN] = take(given);
    if (!bench_functions[BARE].alloc || !bench_functions[GIVEN].alloc)
        return failed("symbols", 0);
    return open_context() || load_kernel();
}

void bench_settle(void)
{
    GIVEN_AS(cuCtxSynchronize, "cuCtxSynchronize");
    f_cuCtxSynchronize();
}
