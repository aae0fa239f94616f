/*
 * Answers of allocation calls that are not about memory and end jobs.
 *   ends_jobs lines     one line asks three times, then another one does
 *   ends_jobs many      more lines than are told
 *   ends_jobs capture   memory in the middle of a capture, then of the captured stream
 *   ends_jobs host      memory in a function that a stream calls on the host
 *   ends_jobs workers   three children of this process, each of which calls several things
 */
#define HOST_FUNCTIONS(F)                                                                          \
    F(capture, cuStreamBeginCapture)                                                               \
    F(capture_end, cuStreamEndCapture)                                                             \
    F(event_create, cuEventCreate)

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static void lines(void)
{
    CUdeviceptr memory = 0;

    for (int i = 0; i < 3; i++)
        outcome("one line", driver.mem_alloc(&memory, MIB));
    outcome("another line", driver.mem_alloc(&memory, MIB));
}

static void many(void)
{
    CUdeviceptr memory = 0;
    int sum = 0;

#define FOUR_LINES                                                                                 \
    sum += (int)driver.mem_alloc(&memory, MIB);                                                    \
    sum += (int)driver.mem_alloc(&memory, MIB);                                                    \
    sum += (int)driver.mem_alloc(&memory, MIB);                                                    \
    sum += (int)driver.mem_alloc(&memory, MIB)
    FOUR_LINES;
    FOUR_LINES;
    FOUR_LINES;
    printf("outcome: sum %d\n", sum);
}

static void begin(CUstream stream)
{
    MUST(driver.capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static void capture(void)
{
    CUdeviceptr memory = 0;
    CUstream stream;
    CUgraph graph = NULL;

    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    begin(stream);
    outcome("in the capture", driver.mem_alloc(&memory, MIB));
    outcome("of its stream", driver.mem_alloc_async(&memory, MIB, stream));
    outcome("end", driver.capture_end(stream, &graph));
    printf("outcome: graph %s\n", graph ? "made" : "none");
    outcome("afterwards", driver.mem_alloc(&memory, MIB));
}

static int answer;
static CUcontext context;

static void on_host(void *data)
{
    CUdeviceptr memory = 0;

    (void)data;
    driver.context_set(context); /* a real driver permits not even that */
    answer = (int)driver.mem_alloc(&memory, MIB);
}

static void host(void)
{
    CUstream stream;

    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.context_get(&context));
    MUST(driver.launch_host_func(stream, on_host, NULL));
    MUST(driver.stream_synchronize(stream));
    printf("outcome: on the host %d\n", answer);
}

static void work(void)
{
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUresult results[] = {driver.stream_create(&stream, 0), driver.mem_alloc(&memory, MIB),
                          driver.event_create(&event, 0), driver.mem_alloc(&memory, 2 * MIB),
                          driver.mem_alloc_async(&memory, MIB, NULL)};
    bool alike = true;

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        alike = alike && results[i] == CUDA_ERROR_NOT_INITIALIZED;
    _exit(alike ? 0 : 1);
}

static void workers(void)
{
    for (int i = 0; i < 3; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            work();
        waitpid(child, &status, 0);
        printf("outcome: worker %d\n", status);
    }
}

static const struct {
    const char *word;
    void (*run)(void);
} ways[] = {
    {"lines", lines}, {"many", many}, {"capture", capture}, {"host", host}, {"workers", workers}};

int main(int count, char **words)
{
    open_device();
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; count > 1 && i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(words[1], ways[i].word) == 0)
            ways[i].run();
    return 0;
}
