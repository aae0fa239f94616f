/*
 * What one process allocated is mapped by another, which then fills the rest of
 * the device: most of it is the first one's, and in use by both.  The second is
 * forked before either has used CUDA.
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(ipc_get, cuIpcGetMemHandle)                                                                  \
    F(ipc_open, cuIpcOpenMemHandle)

#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static int import(int from)
{
    CUipcMemHandle handle;
    CUdeviceptr memory = 0, own;
    CUresult result = CUDA_SUCCESS;

    if (read(from, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        return 1;
    open_device();
    MUST(driver.ipc_open(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    size_t piece_bytes = scaled(free_bytes(), 4096);
    while (result == CUDA_SUCCESS)
        result = driver.mem_alloc(&own, piece_bytes);
    expect("fill", result, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}

static int export(int to, pid_t importer)
{
    CUipcMemHandle handle;
    CUdeviceptr memory = 0;
    int status = 0;

    open_device();
    MUST(driver.mem_alloc(&memory, scaled(free_bytes(), 10240)));
    MUST(driver.ipc_get(&handle, memory));
    if (write(to, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        return 1;
    waitpid(importer, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(void)
{
    int ends[2];

    if (pipe(ends) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]); /* else an exporter that fails is waited for */
        exit(import(ends[0]));
    }
    return export(ends[1], child);
}
