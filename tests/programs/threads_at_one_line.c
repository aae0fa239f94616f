/*
 * Threads that run out of memory at one line.
 *   threads_at_one_line N [ROUNDS]    each asks ROUNDS times, for another size each time
 *   threads_at_one_line one_survives  two: one frees memory and gets what it asked for, the other,
 *                                     refused before that, goes on without; the program ends at
 * once threads_at_one_line other_fails   the same, but refused after that
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

#define THREADS_MAX 256

static CUcontext context;
static pthread_barrier_t start;
static size_t at_start;
static unsigned rounds = 1;

__attribute__((noinline)) static CUresult ask(size_t bytes)
{
    CUdeviceptr refused = 0;
    CUresult result = driver.mem_alloc(&refused, bytes);

    return result; /* no tail call: this function is to be on the stack */
}

/* Sizes go up and down, and differ between threads. */
static void *ask_in_rounds(void *number)
{
    size_t first = scaled(at_start, 6144) + (size_t)number * 4 * MIB;
    CUresult result = CUDA_SUCCESS;

    MUST(driver.context_set(context));
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < rounds; i++) {
        size_t bytes = first + ((i * 7) % 5) * 512 * MIB;
        result = ask(bytes);
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
            break;
    }
    return (void *)(uintptr_t)result;
}

static void ask_with_many(unsigned count)
{
    pthread_t threads[THREADS_MAX];
    void *result;

    pthread_barrier_init(&start, NULL, count);
    for (size_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, ask_in_rounds, (void *)i);
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], &result);
        outcome("one of many", (CUresult)(uintptr_t)result);
    }
}

/* The threads take turns: who is to go on is told by its number. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static bool fails_last;
static CUdeviceptr cache;

static void wait_for(int number)
{
    pthread_mutex_lock(&lock);
    while (turn != number)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void go_on(void)
{
    pthread_mutex_lock(&lock);
    turn++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *ask_in_turns(void *is_other)
{
    size_t bytes = scaled(at_start, is_other ? 7168 : 6144);

    MUST(driver.context_set(context));
    for (int attempt = 0; attempt < 2; attempt++) {
        int first = fails_last ? 0 : 1;
        wait_for(is_other ? (fails_last ? 2 : 0) : first + attempt);
        if (attempt == 1 && !is_other)
            MUST(driver.mem_free(cache));
        outcome(is_other ? "other" : "survivor", ask(bytes));
        go_on();
        if (is_other)
            break;
    }
    return NULL;
}

static void ask_with_two(void)
{
    pthread_t survivor, other;

    pthread_create(&survivor, NULL, ask_in_turns, NULL);
    pthread_create(&other, NULL, ask_in_turns, &cache);
    pthread_join(survivor, NULL);
    pthread_join(other, NULL);
    fflush(stdout);
    _exit(0);
}

int main(int count, char **words)
{
    CUdeviceptr live;
    unsigned thread_count = count > 1 ? (unsigned)atoi(words[1]) : 2;

    rounds = count > 2 ? (unsigned)atoi(words[2]) : 1;
    open_device();
    MUST(driver.context_get(&context));
    at_start = free_bytes();
    MUST(driver.mem_alloc(&live, scaled(at_start, 8192)));
    MUST(driver.mem_alloc(&cache, scaled(at_start, 4096)));
    if (thread_count > 0 && thread_count <= THREADS_MAX) {
        ask_with_many(thread_count);
        return 0;
    }
    fails_last = strcmp(words[1], "other_fails") == 0;
    ask_with_two();
    return 1;
}
