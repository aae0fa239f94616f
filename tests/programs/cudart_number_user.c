/* Says the number of the libcudart that it reaches (cudart_numbered.c). */
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) int number_reached(void);

int number_reached(void)
{
    void *memory = NULL;
    int number = (int)cudaMalloc(&memory, 1);

    return number;
}
