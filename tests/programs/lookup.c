/*
 * How pointers are looked up must stay as it is without the shim, and every
 * way to a hooked function must give one that works.  One question a run:
 *   lookup next-twice | next-open | self | abi | resolver-abi | per-thread | missing
 *   lookup foreign LIBRARY
 *   lookup scopes LIBRARY     (liblookup_plugin.so)
 */
#define LOAD_DLSYM
#include <fcntl.h>
#include <string.h>

#include "host.h"

/* Looks itself up, as OpenMP tools do: a wrong "next" is this function again. */
__attribute__((weak, visibility("default"))) int lookup_self(void);
int lookup_self(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "lookup_self");
    return next == NULL ? 0 : next == lookup_self ? -1 : 1;
}

static int next_twice(void)
{
    void *first = dlsym(RTLD_NEXT, "open");
    void *second = dlsym(RTLD_NEXT, "open");
    printf("outcome: found %d same %d\n", first != NULL, first == second);
    return first != NULL && first == second ? 0 : 1;
}

static int next_open(void)
{
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    int fd = next == NULL ? -1 : next("/dev/null", O_RDONLY);
    printf("outcome: opened %d\n", fd >= 0);
    return fd >= 0 ? 0 : 1;
}

static int self(void)
{
    int result = lookup_self();
    printf("outcome: next of itself %d\n", result);
    return result;
}

/* The unversioned name is the ABI of CUDA 2.0, with 32-bit sizes and addresses. */
typedef CUresult (*old_mem_alloc)(unsigned int *, unsigned int);
typedef CUresult (*old_mem_free)(unsigned int);

static int use_old(old_mem_alloc old_alloc, old_mem_free old_free)
{
    unsigned int guarded[2] = {0, 0xfeedface};
    CUresult result = old_alloc(&guarded[0], 4096);
    printf("outcome: old allocation %d, word behind it kept %d\n", (int)result,
           guarded[1] == 0xfeedface);
    if (result == CUDA_SUCCESS)
        printf("outcome: old free %d\n", (int)old_free(guarded[0]));
    return guarded[1] == 0xfeedface ? 0 : 1;
}

static int abi(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *old = dlsym(library, "cuMemAlloc"), *current = dlsym(library, "cuMemAlloc_v2");

    open_device();
    printf("outcome: both %d differ %d\n", old != NULL && current != NULL, old != current);
    if (old == NULL || current == NULL || old == current)
        return 1;
    return use_old((old_mem_alloc)old, (old_mem_free)dlsym(library, "cuMemFree"));
}

typedef CUresult (*resolver_4)(const char *, void **, int, cuuint64_t);
typedef CUresult (*resolver_5)(const char *, void **, int, cuuint64_t,
                               CUdriverProcAddressQueryResult *);

static int resolver_abi(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *by_4 = NULL, *by_5 = NULL, *old = NULL;
    void *again_4 = NULL, *again_5 = NULL, *nothing = &library;
    CUdriverProcAddressQueryResult found = (CUdriverProcAddressQueryResult)77;
    resolver_4 resolve_4 = (resolver_4)dlsym(library, "cuGetProcAddress");
    resolver_5 resolve_5 = (resolver_5)dlsym(library, "cuGetProcAddress_v2");

    int wrong = resolve_4("cuMemAlloc", &by_4, 12000, 0) != CUDA_SUCCESS;
    wrong |= resolve_5("cuMemAlloc", &by_5, 12000, 0, &found) != CUDA_SUCCESS;
    wrong |= resolve_5("cuMemAlloc", &old, 2000, 0, NULL) != CUDA_SUCCESS;
    printf("outcome: same %d as dlsym %d old differs %d status %d\n", by_4 == by_5,
           by_5 == dlsym(library, "cuMemAlloc_v2"), old != by_5, (int)found);
    wrong |= by_4 != by_5 || by_5 != dlsym(library, "cuMemAlloc_v2") || old == by_5;
    /* A cudart asks the resolver for the resolver, in both ABIs, and first for nothing at all. */
    wrong |= resolve_5("cuGetProcAddress", &again_4, 11030, 0, NULL) != CUDA_SUCCESS;
    wrong |= resolve_5("cuGetProcAddress", &again_5, 12000, 0, NULL) != CUDA_SUCCESS;
    printf("outcome: resolvers %d %d\n", again_4 == (void *)resolve_4,
           again_5 == (void *)resolve_5);
    wrong |= again_4 != (void *)resolve_4 || again_5 != (void *)resolve_5;
    printf("outcome: empty name %d\n", (int)resolve_5("", &nothing, 0, 0, NULL));
    return wrong;
}

static int per_thread(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *legacy = NULL, *ptsz = NULL;
    resolver_5 resolve = (resolver_5)dlsym(library, "cuGetProcAddress_v2");
    CUdeviceptr address;

    open_device();
    MUST(resolve("cuMemAllocAsync", &legacy, 12000, 0, NULL));
    MUST(resolve("cuMemAllocAsync", &ptsz, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                 NULL));
    printf("outcome: differ %d as dlsym %d\n", legacy != ptsz,
           ptsz == dlsym(library, "cuMemAllocAsync_ptsz"));
    MUST(((__typeof__(&cuMemAllocAsync))ptsz)(&address, MIB, NULL));
    tell_live();
    MUST(driver.mem_free(address));
    tell_live();
    return legacy != ptsz && ptsz == dlsym(library, "cuMemAllocAsync_ptsz") ? 0 : 1;
}

static int missing(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = &library;
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
    resolver_5 resolve = (resolver_5)dlsym(library, "cuGetProcAddress_v2");

    printf("outcome: dlsym %d error %d\n", dlsym(library, "cuNoSuchThing") != NULL,
           dlerror() != NULL);
    printf("outcome: default %d\n", dlsym(RTLD_DEFAULT, "cudnnCreateNoSuchThing") != NULL);
    int result = (int)resolve("cuNoSuchThing", &found, 12000, 0, &status);
    printf("outcome: resolver %d pointer %d status %d\n", result, found != NULL, (int)status);
    return 0;
}

/* Another library's function that bears a driver's name stays the other library's. */
static int foreign(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    int (*its)(void) = library == NULL ? NULL : (int (*)(void))dlsym(library, "cuMemAlloc_v2");
    printf("outcome: foreign %d\n", its == NULL ? -1 : its());
    return its == NULL || its() != 4711;
}

/* As a program that has a runtime inside and shows it to others. */
__attribute__((visibility("default"))) int cudaMallocHost(void);
int cudaMallocHost(void)
{
    return 4711;
}

static void tell_scopes(const char *when)
{
    void *program = dlopen(NULL, RTLD_NOW);

    printf("outcome: %s: default %d %d program %d %d own %d %d\n", when,
           dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL, dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL,
           dlsym(program, "cuMemAlloc_v2") != NULL, dlsym(program, "cudaMalloc") != NULL,
           dlsym(RTLD_DEFAULT, "cudaMallocHost") == (void *)cudaMallocHost,
           dlsym(program, "cudaMallocHost") == (void *)cudaMallocHost);
}

/* Whoever opens the driver for itself alone does not show it to the others. */
static int scopes(const char *path)
{
    tell_scopes("nothing loaded");
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*sees)(const char *) =
        plugin == NULL ? NULL : (int (*)(const char *))dlsym(plugin, "lookup_plugin_sees");
    if (sees == NULL)
        return 1;
    tell_scopes("driver of a plugin");
    printf("outcome: plugin sees %d\n", sees("cuMemAlloc_v2"));
    dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    tell_scopes("driver for all");
    return 0;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        int (*ask)(void);
    } questions[] = {{"next-twice", next_twice},
                     {"next-open", next_open},
                     {"self", self},
                     {"abi", abi},
                     {"resolver-abi", resolver_abi},
                     {"per-thread", per_thread},
                     {"missing", missing}};

    if (count == 3 && strcmp(words[1], "foreign") == 0)
        return foreign(words[2]);
    if (count == 3 && strcmp(words[1], "scopes") == 0)
        return scopes(words[2]);
    for (size_t i = 0; count == 2 && i < sizeof(questions) / sizeof(questions[0]); i++) {
        if (strcmp(words[1], questions[i].name) == 0)
            return questions[i].ask();
    }
    return 2;
}
