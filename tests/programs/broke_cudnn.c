/*
 * The shape of cuDNN 8: a thin library that opens the one with the work in it
 * and looks its own name up there.  Whoever answers with the first library's
 * function sends it round in circles.
 */
#include <dlfcn.h>
#include <stddef.h>

int cudnnCreate(const char *folder);
int cuStreamOfMine(void);

/* A name in the driver's style, of somebody else, next in the order of search. */
int cuStreamOfMine(void)
{
    static int depth;
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "cuStreamOfMine");

    if (depth++ > 0)
        return -1;
    return next == NULL ? 0 : next();
}

int cudnnCreate(const char *path)
{
    static int depth;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*work)(const char *) =
        library == NULL ? NULL : (int (*)(const char *))dlsym(library, "cudnnCreate");

    if (depth++ > 0 || work == NULL)
        return -1;
    return work(path);
}
