/*
 * Another process holds the memory.
 *   scenario_5 stays    the holder outlives the victim
 *   scenario_5 leaves   the holder goes after two seconds; asked again, it works
 *   scenario_5 ends     the holder ends by itself after two seconds
 *   scenario_5 twice    it stays, and the victim asks three times
 *   scenario_5 many     it ends, too, and 64 threads ask at once for 160 each
 *   scenario_5 visited  it stays, and a small process comes and goes while the victim asks
 *   scenario_5 launch   it ends, too, and leaves too little for a kernel
 *   scenario_5 first    it ends, too, and leaves too little for the victim's first context
 *   scenario_5 hold N [MIB]
 *                       what the victim starts as the holder; it ends after N seconds, 0: never;
 *                       MIB: what it holds, negative: what it leaves
 */
#include <pthread.h>

#include "holder.h"

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

static void ask_while_visited(void)
{
    pid_t holder = start_holder("0");
    CUdeviceptr wanted = 0;

    open_device();
    size_t bytes = scaled(free_bytes() / 5632 * 15872, 8192);
    outcome("allocation beside another process", driver.mem_alloc(&wanted, bytes));
    pid_t visitor = start_holder_of("16", "0");
    bytes += 2 * MIB;
    outcome("asked again, while a small one is there", driver.mem_alloc(&wanted, bytes));
    stop_holder(visitor);
    bytes += 2 * MIB;
    outcome("asked again, when it has left", driver.mem_alloc(&wanted, bytes));
    stop_holder(holder);
}

/* With lazy loading the first launch needs memory. */
static void launch_on_full_device(void)
{
    CUmodule module;
    CUfunction function;

    open_device();
    MUST(driver.module_load_data(&module, "an image"));
    MUST(driver.module_get_function(&function, module, "kernel"));
    pid_t holder = start_holder_of("-1", "2");
    outcome("launch", driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL));
    stop_holder(holder);
}

static void open_full_device(void)
{
    CUcontext first;
    CUdevice device;
    pid_t holder = start_holder_of("-256", "2");

    load_driver();
    MUST(driver.init(0));
    MUST(driver.device_get(&device, 0));
    outcome("first context", driver.primary_retain(&first, device));
    stop_holder(holder);
}

static const struct {
    const char *name;
    void (*run)(void);
} situations[] = {
    {"visited", ask_while_visited},
    {"launch", launch_on_full_device},
    {"first", open_full_device},
};

int main(int count, char **words)
{
    CUdeviceptr wanted = 0;

    hold_if_told(count, words);
    for (size_t i = 0; count > 1 && i < sizeof situations / sizeof situations[0]; i++)
        if (strcmp(words[1], situations[i].name) == 0) {
            situations[i].run();
            return 0;
        }
    bool is_many = count > 1 && strcmp(words[1], "many") == 0;
    bool ends = is_many || (count > 1 && strcmp(words[1], "ends") == 0);
    pid_t holder = start_holder(ends ? "2" : "0");
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
