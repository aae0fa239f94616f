/*
 * One line keeps 8 MiB an iteration, another allocates 512 MiB and frees it;
 * in the end the innocent one fails.
 *   leak beside   while a child has a context on the device, and nothing else
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

__attribute__((noinline)) static CUresult keeps(size_t bytes)
{
    CUdeviceptr kept;
    CUresult result = driver.mem_alloc(&kept, bytes);
    __asm__ volatile("" ::: "memory");
    return result;
}

__attribute__((noinline)) static CUresult uses(size_t bytes)
{
    CUdeviceptr used;
    CUresult result = driver.mem_alloc(&used, bytes);
    if (result == CUDA_SUCCESS)
        MUST(driver.mem_free(used));
    return result;
}

/* Before this process uses CUDA; returns once the child's context is there. */
static pid_t start_bystander(void)
{
    int ready[2];
    char byte = 0;

    if (pipe(ready) != 0)
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        open_device();
        for (ssize_t told = write(ready[1], "!", 1); told == 1;)
            pause();
        _exit(1);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        exit(1);
    close(ready[0]);
    return child;
}

static int run_out_of_memory(void)
{
    open_device();
    size_t at_start = free_bytes();
    size_t kept_bytes = scaled(at_start, 8), used_bytes = scaled(at_start, 512);

    for (unsigned i = 1; i < 100000; i++) {
        MUST(keeps(kept_bytes));
        CUresult result = uses(used_bytes);
        if (result != CUDA_SUCCESS) {
            printf("outcome: iteration %u\n", i);
            expect("the innocent line", result, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
            return 0;
        }
    }
    printf("outcome: never failed\n");
    return 1;
}

int main(int count, char **words)
{
    if (count < 2 || strcmp(words[1], "beside") != 0)
        return run_out_of_memory();
    pid_t bystander = start_bystander();
    int result = run_out_of_memory();
    kill(bystander, SIGKILL);
    waitpid(bystander, NULL, 0);
    return result;
}
