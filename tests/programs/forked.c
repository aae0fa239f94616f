/*
 * The parent uses CUDA and forks; the child may not, and its failure is its
 * own.  The parent goes on undisturbed.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

int main(void)
{
    CUdeviceptr before, child_memory = 0, after;
    int status = 0;

    open_device();
    MUST(driver.mem_alloc(&before, MIB));
    pid_t child = fork();
    if (child == 0) {
        outcome("allocation in the forked child", driver.mem_alloc(&child_memory, MIB));
        tell_live();
        _exit(0);
    }
    waitpid(child, &status, 0);
    MUST(driver.mem_alloc(&after, MIB));
    MUST(driver.mem_free(after));
    MUST(driver.mem_free(before));
    outcome("parent", CUDA_SUCCESS);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
