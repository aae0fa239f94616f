/*
 * Executes sequences of calls from a file and logs on stdout what the driver
 * answered: results, out-parameters, what the device says is free, and the
 * order in which work ran.  The log of a run with the shim must be that of a
 * run without, byte for byte.
 *
 *   differential FILE [without-free]
 *
 * A line of the file is "sequence SEED" or "thread step a b c".  Threads are
 * real, and take turns: the main thread hands each step to the one it names.
 * Where the books differ, a line on stderr and the exit status 3; 4 where it
 * took too long (diff_limit.h).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff_limit.h"
#include "diff_world.h"

struct diff_world world;

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    diff_function function; /* NULL: its turn is over */
    const struct diff_step *step;
};

static struct worker workers[DIFF_THREADS];

static void *work(void *argument)
{
    struct worker *worker = argument;

    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (worker->function == NULL)
            pthread_cond_wait(&worker->changed, &worker->lock);
        worker->function(worker->step);
        worker->function = NULL;
        pthread_cond_broadcast(&worker->changed);
    }
    return NULL;
}

static void start_workers(void)
{
    for (int i = 0; i < DIFF_THREADS; i++) {
        pthread_mutex_init(&workers[i].lock, NULL);
        pthread_cond_init(&workers[i].changed, NULL);
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        pthread_detach(workers[i].thread);
    }
}

static void run_on_thread(diff_function function, const struct diff_step *step)
{
    struct worker *worker = &workers[step->thread];

    pthread_mutex_lock(&worker->lock);
    worker->step = step;
    worker->function = function;
    pthread_cond_broadcast(&worker->changed);
    while (worker->function != NULL)
        pthread_cond_wait(&worker->changed, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

static diff_function find(const char *name)
{
    static const struct diff_operation *const lists[] = {
        diff_memory_operations,  diff_stream_operations,  diff_pool_operations,
        diff_vmm_operations,     diff_context_operations, diff_graph_operations,
        diff_runtime_operations,
    };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const struct diff_operation *one = lists[i]; one->name != NULL; one++)
            if (strcmp(one->name, name) == 0)
                return one->function;
    return NULL;
}

static void to_first_context(const struct diff_step *step)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

    cu.capture_mode(&mode);
    cu.context_set(world.contexts[0].handle);
    world.current[step->thread] = 0;
}

/* The capture is ended by the thread that began it. */
static void release_all(const struct diff_step *step)
{
    to_first_context(step);
    diff_release_all();
}

static void clean_up(const struct diff_step *step)
{
    (void)step;
    cu.context_synchronize();
    diff_clean_memories();
    cu.context_set(world.contexts[0].handle);
    diff_clean_graphs();
    diff_clean_vmm();
    diff_clean_streams();
    diff_clean_pools();
    diff_clean_contexts();
}

static bool end_sequence(uint64_t seed, unsigned index, bool good)
{
    struct diff_step step = {.thread = world.capture_thread, .name = "end"};

    diff_limit_step(seed, index, step.name);
    diff_log_begin(seed, index, &step);
    run_on_thread(release_all, &step);
    diff_settle();
    for (step.thread = DIFF_THREADS - 1; step.thread >= 0; step.thread--)
        run_on_thread(to_first_context, &step);
    step.thread = 0;
    run_on_thread(clean_up, &step);
    diff_log_end();
    fflush(stdout);
    return good && diff_books_agree(seed, index, "end");
}

static void take_step(uint64_t seed, unsigned index, const struct diff_step *step)
{
    diff_function function = find(step->name);

    if (function == NULL || step->thread < 0 || step->thread >= DIFF_THREADS) {
        fprintf(stderr, "no such step: %d %s\n", step->thread, step->name);
        exit(2);
    }
    diff_limit_step(seed, index, step->name);
    diff_log_begin(seed, index, step);
    run_on_thread(function, step);
    diff_settle();
    diff_log_end();
}

static void begin_sequence(void)
{
    world.numbers = 0;
    world.capturing = -1;
    world.capture_thread = 0;
    for (int i = 0; i < DIFF_RANGES; i++)
        world.ranges[i].handle = -1;
}

/* The first difference of a sequence is told, the others follow from it. */
static int run(FILE *file)
{
    char line[160];
    unsigned long long seed = 0;
    unsigned index = 0;
    bool open = false, good = true, all_good = true;
    struct diff_step step;

    while (fgets(line, sizeof(line), file) != NULL) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (strncmp(line, "sequence ", 9) == 0) {
            if (open)
                all_good &= end_sequence(seed, index, good);
            seed = strtoull(line + 9, NULL, 10);
            begin_sequence();
            index = 0;
            open = good = true;
        } else if (sscanf(line, "%d %31s %lld %lld %lld", &step.thread, step.name, &step.a, &step.b,
                          &step.c) == 5) {
            index++;
            take_step(seed, index, &step);
            good = good && diff_books_agree(seed, index, step.name);
        }
    }
    if (open)
        all_good &= end_sequence(seed, index, good);
    return all_good ? 0 : 3;
}

/* The main thread may look while others capture. */
static bool open_devices(void)
{
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

    if (!diff_load() || cu.init(0) != CUDA_SUCCESS ||
        cu.device_count(&world.device_count) != CUDA_SUCCESS || world.device_count == 0)
        return false;
    if (world.device_count > DIFF_DEVICES)
        world.device_count = DIFF_DEVICES;
    for (int i = 0; i < world.device_count; i++) {
        world.contexts[i].device = i;
        world.pools[i].device = i;
        if (cu.primary_retain(&world.contexts[i].handle, i) != CUDA_SUCCESS ||
            cu.device_pool_default(&world.pools[i].handle, i) != CUDA_SUCCESS)
            return false;
    }
    world.streams[1].handle = CU_STREAM_PER_THREAD;
    cu.context_set(world.contexts[0].handle);
    return cu.capture_mode(&relaxed) == CUDA_SUCCESS;
}

int main(int count, char **words)
{
    FILE *file = count == 2 || count == 3 ? fopen(words[1], "re") : NULL;

    if (file == NULL)
        return 2;
    setvbuf(stdout, NULL, _IOLBF,
            0); /* where a driver ends the process, the log says how far it got */
    diff_limit_start();
    if (!open_devices()) {
        puts("no device");
        return 77;
    }
    world.tells_free = count == 2;
    start_workers();
    struct diff_step step = {.name = "start"};
    for (step.thread = 0; step.thread < DIFF_THREADS; step.thread++)
        run_on_thread(to_first_context, &step);
    int status = run(file);
    fclose(file);
    fflush(stdout);
    return status;
}
