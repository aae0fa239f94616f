/*
 * A preload library that changes nothing and writes down what a libcudart is
 * handed: it stands before the shim, passes each look-up on, and notes the
 * answer.  One line per look-up in the file $CUDART_RECORD:
 *
 *   caller  way  name  version  flags  result  status  module  symbol  pointer
 */
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

typedef void *(*lookup)(void *, const char *);
typedef CUresult (*resolver_4)(const char *, void **, int, cuuint64_t);
typedef CUresult (*resolver_5)(const char *, void **, int, cuuint64_t,
                               CUdriverProcAddressQueryResult *);

static resolver_4 next_resolver_4;
static resolver_5 next_resolver_5;

/* libc's, asked for the one behind us: the shim's if it is there. */
static lookup next_lookup(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    lookup of_libc = NULL;

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]) && of_libc == NULL; i++)
        of_libc = (lookup)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return of_libc != NULL ? (lookup)of_libc(RTLD_NEXT, "dlsym") : NULL;
}

static const char *last_part(const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path != NULL ? path : "?";
}

struct question {
    const void *caller;
    const char *way, *name;
    int version;
    cuuint64_t flags;
    int result, status; /* status -1: its pointer is NULL */
};

static void note(const struct question *question, const void *answer)
{
    const char *path = getenv("CUDART_RECORD");
    Dl_info caller = {0}, found = {0};
    char line[1024];

    dladdr(question->caller, &caller);
    if (answer != NULL)
        dladdr(answer, &found);
    int length = snprintf(line, sizeof(line), "%s\t%s\t%s\t%d\t%llu\t%d\t%d\t%s\t%s\t%p\n",
                          last_part(caller.dli_fname), question->way, question->name,
                          question->version, (unsigned long long)question->flags, question->result,
                          question->status, answer != NULL ? last_part(found.dli_fname) : "",
                          found.dli_sname != NULL ? found.dli_sname : "", answer);
    int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file >= 0 && write(file, line, (size_t)length) != length)
        abort();
    if (file >= 0)
        close(file);
}

static void stay_in_between(const char *name, int version, void **answer);

static CUresult resolve_4(const char *name, void **out, int version, cuuint64_t flags)
{
    CUresult result = next_resolver_4(name, out, version, flags);
    struct question question = {
        __builtin_return_address(0), "four", name, version, flags, (int)result, -1};

    note(&question, result == CUDA_SUCCESS ? *out : NULL);
    if (result == CUDA_SUCCESS)
        stay_in_between(name, version, out);
    return result;
}

static CUresult resolve_5(const char *name, void **out, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    CUresult result = next_resolver_5(name, out, version, flags, status);
    struct question question = {
        __builtin_return_address(0),       "five", name, version, flags, (int)result,
        status != NULL ? (int)*status : -1};

    note(&question, result == CUDA_SUCCESS ? *out : NULL);
    if (result == CUDA_SUCCESS)
        stay_in_between(name, version, out);
    return result;
}

/* A resolver that is handed out is one that we write down, too. */
static void stay_in_between(const char *name, int version, void **answer)
{
    if (*answer == NULL || strcmp(name, "cuGetProcAddress") != 0)
        return;
    if (version >= 12000) {
        next_resolver_5 = (resolver_5)*answer;
        *answer = (void *)resolve_5;
    } else {
        next_resolver_4 = (resolver_4)*answer;
        *answer = (void *)resolve_4;
    }
}

VISIBLE void *dlsym(void *restrict handle, const char *restrict name)
{
    lookup next = next_lookup();
    void *found = next != NULL ? next(handle, name) : NULL;
    struct question question = {
        .caller = __builtin_return_address(0), .way = "dlsym", .name = name};

    if (strncmp(name, "cu", 2) != 0 || strncmp(name, "cuda", 4) == 0)
        return found;
    note(&question, found);
    if (strcmp(name, "cuGetProcAddress_v2") == 0)
        stay_in_between("cuGetProcAddress", 12000, &found);
    else if (strcmp(name, "cuGetProcAddress") == 0)
        stay_in_between("cuGetProcAddress", 11030, &found);
    return found;
}
