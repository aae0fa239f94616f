/* Its constructor waits for the program that loads it; see broke_loader.c. */
#include <dlfcn.h>
#include <stddef.h>

extern int broke_constructor_waited;
int broke_constructor_waited = -1;

__attribute__((constructor)) static void wait_for_the_program(void)
{
    int (*wait_for_it)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "broke_loader_wait");

    if (wait_for_it != NULL)
        broke_constructor_waited = wait_for_it();
}
