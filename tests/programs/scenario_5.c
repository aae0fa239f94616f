/*
 * Another process holds the memory.
 *   scenario_5 stays    the holder outlives the victim
 *   scenario_5 leaves   the holder goes after two seconds; asked again, it works
 *   scenario_5 ends     the holder ends by itself after two seconds
 *   scenario_5 twice    it stays, and the victim asks three times
 *   scenario_5 many     it ends, too, and 64 threads ask at once for 160 each
 *   scenario_5 hold N   what the victim starts as the holder; it ends after N seconds, 0: never
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

__attribute__((noreturn)) static void hold(unsigned seconds)
{
    CUdeviceptr held;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "memory-holder");
    open_device();
    MUST(driver.mem_alloc(&held, scaled(free_bytes(), 10240)));
    printf("holding\n");
    fflush(stdout);
    alarm(seconds);
    for (;;)
        pause();
}

/* Returns the holder's pid once it holds its memory. */
static pid_t start_holder(const char *self, const char *seconds)
{
    char line[64];
    int output[2];

    if (pipe(output) != 0)
        exit(1);
    pid_t holder = fork();
    if (holder == 0) {
        dup2(output[1], STDOUT_FILENO);
        close(output[0]);
        execl(self, self, "hold", seconds, (char *)NULL);
        _exit(127);
    }
    close(output[1]);
    FILE *lines = fdopen(output[0], "r");
    if (lines == NULL || fgets(line, sizeof(line), lines) == NULL ||
        strcmp(line, "holding\n") != 0) {
        printf("outcome: the holder did not start\n");
        exit(1);
    }
    fclose(lines);
    return holder;
}

static void stop_holder(pid_t holder)
{
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
}

static CUcontext context;
static pthread_barrier_t start;
static size_t share;

static void *ask(void *answer)
{
    CUdeviceptr memory = 0;

    MUST(driver.context_set(context));
    pthread_barrier_wait(&start);
    *(CUresult *)answer = driver.mem_alloc(&memory, share);
    return NULL;
}

/* 10,240 in all: more than is free beside the holder, less than without it. */
static void ask_with_many(size_t at_start)
{
    pthread_t threads[64];
    CUresult answers[64];

    share = scaled(at_start, 160);
    MUST(driver.context_get(&context));
    pthread_barrier_init(&start, NULL, 64);
    for (int i = 0; i < 64; i++)
        pthread_create(&threads[i], NULL, ask, &answers[i]);
    for (int i = 0; i < 64; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 64; i++)
        outcome("one of many", answers[i]);
}

int main(int count, char **words)
{
    CUdeviceptr wanted = 0;

    if (count > 1 && strcmp(words[1], "hold") == 0)
        hold(count > 2 ? (unsigned)atoi(words[2]) : 0);

    bool is_many = count > 1 && strcmp(words[1], "many") == 0;
    bool ends = is_many || (count > 1 && strcmp(words[1], "ends") == 0);
    pid_t holder = start_holder("/proc/self/exe", ends ? "2" : "0");
    fprintf(stderr, "holder: pid=%d\n", (int)holder);
    open_device();
    /* Half of what the device had before the holder came. */
    size_t bytes = scaled(free_bytes() / 5632 * 15872, 8192);
    if (is_many) {
        ask_with_many(free_bytes() / 5632 * 15872);
        stop_holder(holder);
        return 0;
    }
    CUresult result = driver.mem_alloc(&wanted, bytes);
    expect("allocation beside another process", result, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS);

    for (int i = 0; count > 1 && strcmp(words[1], "twice") == 0 && i < 2; i++)
        expect("asked again", driver.mem_alloc(&wanted, bytes + (size_t)(i + 1) * 2 * MIB),
               CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS);
    if (count > 1 && strcmp(words[1], "leaves") == 0)
        sleep(2);
    stop_holder(holder);
    if (result != CUDA_SUCCESS) {
        /* The driver takes a moment to clean up after a dead process. */
        for (int i = 0; i < 100 && result != CUDA_SUCCESS; i++) {
            usleep(100000);
            result = driver.mem_alloc(&wanted, bytes);
        }
    }
    expect("allocation after it left", result, CUDA_SUCCESS, CUDA_SUCCESS);
    MUST(driver.mem_free(wanted));
    return 0;
}
