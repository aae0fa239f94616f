/*
 * Several libraries in one process, each linked with a libcudart of its own.
 * Only the first of them allocates: only its runtime may go and look for the
 * driver.
 *   cudart_two LIBRARY…
 */
#include <dlfcn.h>
#include <stdio.h>

static void *user(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        printf("outcome: %s\n", dlerror());
    return library;
}

int main(int count, char **words)
{
    int (*version)(void), (*allocate)(void);
    void *first = NULL;

    for (int i = 1; i < count; i++) {
        void *library = user(words[i]);
        if (library == NULL)
            return 1;
        first = first != NULL ? first : library;
    }
    *(void **)&version = dlsym(first, "user_version");
    *(void **)&allocate = dlsym(first, "user_allocate");
    if (version == NULL || allocate == NULL)
        return 1;
    printf("outcome: version %d\n", version() / 1000);
    printf("outcome: allocation %d\n", allocate());
    return 0;
}
