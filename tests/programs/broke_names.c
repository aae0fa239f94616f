/*
 * Libraries whose functions begin with "cu" and are not the driver's.
 *   broke_names LIBRARY LIBRARY-WITH-THE-WORK
 */
#define LOAD_DLSYM
#include "host.h"

int main(int count, char **words)
{
    void *library = count == 3 ? dlopen(words[1], RTLD_NOW | RTLD_GLOBAL) : NULL;

    if (library == NULL)
        return 1;
    open_device();
    int (*create)(const char *) = (int (*)(const char *))dlsym(library, "cudnnCreate");
    int (*stream)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "cuStreamOfMine");
    printf("outcome: created %d\n", create(words[2]));
    printf("outcome: next %d\n", stream == NULL ? -2 : stream());
    return 0;
}
