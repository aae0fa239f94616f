/*
 * Memory is short, and while a callback is asked for the idle 12,288 another
 * thread begins to capture, in global mode; nobody may end that capture but it.
 *   regress_capture_meanwhile gives    the callback frees when the capture has begun
 *   regress_capture_meanwhile refuses  it touches nothing, and only says that it was done
 *   regress_capture_meanwhile many     it frees, and one short capture follows another
 *   regress_capture_meanwhile wait     another process holds the memory and goes after 2 s; the
 *                                      capture begins before and ends after that
 * Sizes in MiB of the written scenario.
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(capture, cuStreamBeginCapture)                                                               \
    F(capture_end, cuStreamEndCapture)                                                             \
    F(graph_destroy, cuGraphDestroy)

#include <pthread.h>
#include <stdatomic.h>

#include "holder.h"

static const char *how;
static CUcontext context;
static CUstream stream;
static CUdeviceptr idle;
static _Atomic bool is_asked, has_begun, is_over;

static bool is(const char *word)
{
    return strcmp(how, word) == 0;
}

static void wait_until(_Atomic bool *it)
{
    for (int i = 0; !atomic_load(it) && i < 20000; i++)
        usleep(1000);
}

static CUresult capture_one(void)
{
    CUgraph graph = NULL;

    MUST(driver.capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    atomic_store(&has_begun, true);
    if (!is("many"))
        wait_until(&is_over);
    CUresult result = driver.capture_end(stream, &graph);
    if (graph)
        MUST(driver.graph_destroy(graph));
    return result;
}

/* Until the failing call has returned; without the library all begins when it has. */
static void *capture(void *unused)
{
    CUresult result;

    MUST(driver.context_set(context));
    if (is("wait"))
        usleep(500000);
    else
        wait_until(&is_asked);
    do
        result = capture_one();
    while (result == CUDA_SUCCESS && !atomic_load(&is_over));
    outcome("end of capture", result);
    return unused;
}

static int give_back(void *arg, int device, uint64_t wanted_bytes)
{
    (void)arg, (void)device, (void)wanted_bytes;
    atomic_store(&is_asked, true);
    wait_until(&has_begun);
    if (is("refuses"))
        return 0;
    fprintf(stderr, "shim: freed=%d\n", driver.mem_free(idle));
    return 0;
}

int main(int count, char **words)
{
    CUdeviceptr memory;
    pthread_t thread;

    hold_if_told(count, words);
    how = count > 1 ? words[1] : "gives";
    pid_t holder = is("wait") ? start_holder("2") : 0;
    open_device();
    size_t at_start = is("wait") ? free_bytes() / 5632 * 15872 : free_bytes();
    MUST(driver.context_get(&context));
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    if (!is("wait"))
        MUST(driver.mem_alloc(&idle, scaled(at_start, 12288)));
    if (!is("wait") && gpuoomshim_register_flush)
        gpuoomshim_register_flush("keeper", give_back, NULL);
    if (pthread_create(&thread, NULL, capture, NULL) != 0)
        exit(1);
    expect("asked", driver.mem_alloc(&memory, scaled(at_start, 8192)), CUDA_SUCCESS,
           CUDA_ERROR_OUT_OF_MEMORY);
    atomic_store(&is_asked, true);
    usleep(is("many") ? 100000 : 0);
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    if (holder)
        stop_holder(holder);
    return 0;
}
