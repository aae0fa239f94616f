/*
 * One process allocates, another opens the memory: the bytes are the first one's.
 * The second is forked before either has used CUDA.
 *   own_ipc FOLDER for snapshots
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(ipc_get, cuIpcGetMemHandle)                                                                  \
    F(ipc_open, cuIpcOpenMemHandle)                                                                \
    F(ipc_close, cuIpcCloseMemHandle)

#include <sys/wait.h>
#include <unistd.h>

#include "own.h"

static const char *folder;

static int import(int from)
{
    CUipcMemHandle handle;
    CUdeviceptr memory = 0, own = 0;

    if (read(from, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        return 1;
    open_device();
    MUST(driver.mem_alloc(&own, 2 * MIB));
    CUresult opened = driver.ipc_open(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    expect("open", opened, CUDA_SUCCESS, CUDA_SUCCESS);
    tell_books("opened", 0, 2 * MIB);
    tell_kind(folder, "opened", "imported", 8 * MIB);
    outcome("close", driver.ipc_close(memory));
    tell_kind(folder, "closed", "imported", 0);
    MUST(driver.mem_free(own));
    tell_books("closed", 0, 0);
    return 0;
}

static int export(int to, pid_t importer)
{
    CUipcMemHandle handle;
    CUdeviceptr memory = 0;
    int status = 0;

    open_device();
    MUST(driver.mem_alloc(&memory, 8 * MIB));
    MUST(driver.ipc_get(&handle, memory));
    if (write(to, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        return 1;
    waitpid(importer, &status, 0);
    tell_books("exported", 0, 8 * MIB);
    outcome("free", driver.mem_free(memory));
    tell_books("freed", 0, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int count, char **words)
{
    int ends[2];

    folder = count > 1 ? words[1] : ".";
    if (pipe(ends) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]); /* else an exporter that fails is waited for */
        exit(import(ends[0]));
    }
    return export(ends[1], child);
}
