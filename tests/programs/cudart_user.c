/*
 * Uses whichever libcudart it is linked with, or has inside: makes it find its
 * driver, fails to allocate, and says what its last error is.  As a program
 * (with -DPROGRAM) or as a library, of which a process may hold several.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>

#define VISIBLE __attribute__((visibility("default")))

VISIBLE int user_version(void);
VISIBLE int user_allocate(void);
VISIBLE int user_peek(void);
VISIBLE int user_clear(void);

int user_version(void)
{
    int version = 0;
    cudaRuntimeGetVersion(&version);
    return version;
}

int user_allocate(void)
{
    void *memory = NULL;
    return (int)cudaMalloc(&memory, 4096);
}

int user_peek(void)
{
    return (int)cudaPeekAtLastError();
}

int user_clear(void)
{
    return (int)cudaGetLastError();
}

#ifdef PROGRAM
int main(void)
{
    printf("outcome: version %d\n", user_version());
    printf("outcome: allocation %d\n", user_allocate());
    printf("outcome: peek %d last %d then %d\n", user_peek(), user_clear(), user_peek());
    return 0;
}
#endif
