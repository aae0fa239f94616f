/* A library that is linked with the driver, and looks a name up without saying where. */
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("default"))) int lookup_plugin_sees(const char *name);

int lookup_plugin_sees(const char *name)
{
    int version = 0;

    cuDriverGetVersion(&version);
    return dlsym(RTLD_DEFAULT, name) != NULL;
}
