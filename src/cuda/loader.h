/*
 * The C library's dlopen and dlsym, found without linking against them (they
 * moved between libraries in glibc 2.34) and past our own hook of dlsym.
 *
 * Loader context: both take the loader's big lock and may run constructors.
 * Only from the cuInit hook, or where nothing of the host can be waiting.  A
 * failure leaves nothing in dlerror.
 */
#ifndef GOS_CUDA_LOADER_H
#define GOS_CUDA_LOADER_H

struct gos_loader {
    void *(*open)(const char *name, int flags);      /* NULL on failure */
    void *(*symbol)(void *handle, const char *name); /* NULL if absent */
};

/* Tests put their own here. */
extern struct gos_loader gos_loader;

#endif
