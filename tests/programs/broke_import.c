/*
 * Memory of another process: opened, freed by the wrong function, closed,
 * closed again.  The child owns it; the parent only looks.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static int own(int to_parent, int from_parent)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*get)(CUipcMemHandle *, CUdeviceptr) =
        (CUresult(*)(CUipcMemHandle *, CUdeviceptr))dlsym(library, "cuIpcGetMemHandle");
    CUipcMemHandle handle;
    CUdeviceptr address;
    char done;

    open_device();
    MUST(driver.mem_alloc(&address, 4 * MIB));
    MUST(get(&handle, address));
    if (write(to_parent, &handle, sizeof(handle)) != sizeof(handle))
        return 1;
    if (read(from_parent, &done, 1) < 0)
        return 1;
    MUST(driver.mem_free(address));
    return 0;
}

static void look(const CUipcMemHandle *handle)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*open_memory)(CUdeviceptr *, CUipcMemHandle, unsigned) =
        (CUresult(*)(CUdeviceptr *, CUipcMemHandle, unsigned))dlsym(library,
                                                                    "cuIpcOpenMemHandle_v2");
    CUresult (*close_memory)(CUdeviceptr) =
        (CUresult(*)(CUdeviceptr))dlsym(library, "cuIpcCloseMemHandle");
    CUdeviceptr address = 0;

    outcome("opening", open_memory(&address, *handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    tell_live();
    outcome("free in stream order", driver.mem_free_async(address, NULL));
    tell_live();
    outcome("closing", close_memory(address));
    outcome("closing again", close_memory(address));
    tell_live();
}

int main(void)
{
    int to_parent[2], to_child[2], status = 0;
    CUipcMemHandle handle;

    if (pipe(to_parent) != 0 || pipe(to_child) != 0)
        return 1;
    pid_t child = fork(); /* before either has seen the driver */
    if (child == 0)
        _exit(own(to_parent[1], to_child[0]));
    open_device();
    if (read(to_parent[0], &handle, sizeof(handle)) != sizeof(handle))
        return 1;
    look(&handle);
    if (write(to_child[1], "x", 1) != 1)
        return 1;
    waitpid(child, &status, 0);
    outcome("owner", (CUresult)(WIFEXITED(status) ? WEXITSTATUS(status) : 999));
    return 0;
}
