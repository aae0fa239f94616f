/*
 * A library whose constructor asks the program for memory, and waits in it,
 * under the loader's lock, until another thread has allocated as well.
 */
#include <stddef.h>

__attribute__((weak)) void allocate_in_constructor(void);

__attribute__((constructor)) static void construct(void)
{
    if (allocate_in_constructor != NULL)
        allocate_in_constructor();
}
