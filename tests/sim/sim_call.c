#include "sim_call.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim_capacity.h"
#include "sim_context.h"
#include "sim_graph.h"

enum phase { BEFORE_INIT, RUNNING, FORKED, GONE };

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_progress = PTHREAD_COND_INITIALIZER;

static _Atomic int phase = BEFORE_INIT;
static _Atomic uint64_t calls[SIM_CALL_COUNT];
static _Atomic uint64_t failure_hits[SIM_FAILURES_MAX];
static _Atomic uint64_t kill_hits;
static _Atomic int trace_fd = -1;
static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;
static _Thread_local struct sim_thread *self;
static struct sim_thread *alone; /* whom other calls wait for; under the lock */

static const char *const names[SIM_CALL_COUNT] = {
#define SIM_ENTRY(symbol, base, version, stream) #symbol,
#define SIM_PAIR(symbol, base, version, twin_version, suffix) #symbol, #symbol "_" #suffix,
#include "sim_entries.def"
#undef SIM_ENTRY
#undef SIM_PAIR
};

static void forget_thread(void *thread)
{
    self = NULL;
    free(thread);
}

static void make_thread_key(void)
{
    pthread_key_create(&thread_key, forget_thread);
}

static struct sim_thread *make_thread(void)
{
    static struct sim_thread spare;
    pthread_once(&thread_key_once, make_thread_key);
    self = calloc(1, sizeof(*self));
    if (self == NULL)
        return &spare;
    pthread_setspecific(thread_key, self);
    return self;
}

struct sim_thread *sim_thread_self(void)
{
    return self != NULL ? self : make_thread();
}

/* Errors after which a context is good for nothing but its destruction. */
static bool is_sticky(CUresult result)
{
    return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT ||
           result == CUDA_ERROR_ASSERT || result == CUDA_ERROR_ECC_UNCORRECTABLE ||
           (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
}

static bool is_due(unsigned rule, enum sim_call_id id)
{
    const struct sim_failure *failure = &sim_settings.failures[rule];
    if (strcmp(failure->symbol, names[id]) != 0)
        return false;
    uint64_t hit = atomic_fetch_add_explicit(&failure_hits[rule], 1, memory_order_relaxed) + 1;
    return failure->nth == 0 || failure->nth == hit;
}

static CUresult ordered_failure(enum sim_call_id id)
{
    for (unsigned i = 0; i < sim_settings.failure_count; i++)
        if (is_due(i, id))
            return (CUresult)sim_settings.failures[i].result;
    return CUDA_SUCCESS;
}

static CUresult check_phase(unsigned needs)
{
    int now = atomic_load_explicit(&phase, memory_order_acquire);
    if (now == GONE)
        return CUDA_ERROR_DEINITIALIZED;
    if ((needs & SIM_STARTED) != 0 && now != RUNNING)
        return CUDA_ERROR_NOT_INITIALIZED;
    return CUDA_SUCCESS;
}

static CUresult check_context(unsigned needs)
{
    if ((needs & SIM_CURRENT) == 0)
        return CUDA_SUCCESS;
    CUcontext context = sim_context_current();
    return context != NULL ? sim_context_error(context) : CUDA_ERROR_INVALID_CONTEXT;
}

static void enter_lock(struct sim_thread *thread, unsigned needs)
{
    if ((needs & SIM_LOCKED) == 0)
        return;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &thread->signals);
    pthread_mutex_lock(&sim_lock);
    while (alone != NULL && alone != thread)
        pthread_cond_wait(&sim_progress, &sim_lock);
    thread->holds_lock = true;
}

void sim_be_alone(bool is_alone)
{
    alone = is_alone ? sim_thread_self() : NULL;
    pthread_cond_broadcast(&sim_progress);
}

void sim_wait_for_progress(void)
{
    struct sim_thread *thread = sim_thread_self();
    sigset_t all;
    pthread_sigmask(SIG_SETMASK, &thread->signals, &all);
    pthread_cond_wait(&sim_progress, &sim_lock);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static CUresult check_all(struct sim_thread *thread, enum sim_call_id id, unsigned needs)
{
    CUresult result = check_phase(needs);
    if (result != CUDA_SUCCESS)
        return result;
    enter_lock(thread, needs);
    result = check_context(needs);
    if (result == CUDA_SUCCESS && sim_settings.failure_count != 0)
        result = ordered_failure(id);
    if (result == CUDA_SUCCESS && (needs & SIM_NO_CAPTURE) != 0)
        result = sim_capture_forbids(thread);
    return result;
}

/* Before any lock: calls of several threads take their time side by side. */
static void take_time(void)
{
    if (sim_settings.call_us != 0)
        usleep((useconds_t)sim_settings.call_us);
}

/* As by the kernel's out-of-memory killer: nothing is put in order. */
static void die_if_due(enum sim_call_id id)
{
    if (strcmp(sim_settings.kill.symbol, names[id]) == 0 &&
        atomic_fetch_add(&kill_hits, 1) + 1 == sim_settings.kill.nth)
        raise(SIGKILL);
}

bool sim_admit(enum sim_call_id id, unsigned needs)
{
    take_time();
    struct sim_thread *thread = sim_thread_self();
    if (sim_settings.kill.symbol[0] != '\0')
        die_if_due(id);
    if (!sim_settings.zero_cost)
        atomic_fetch_add_explicit(&calls[id], 1, memory_order_relaxed);
    thread->refusal = check_all(thread, id, needs);
    return thread->refusal == CUDA_SUCCESS;
}

CUresult sim_refusal(void)
{
    return sim_thread_self()->refusal;
}

static void trace_call(enum sim_call_id id, CUresult result)
{
    char line[96];
    int fd = atomic_load_explicit(&trace_fd, memory_order_relaxed);
    int saved_errno = errno;
    int length = snprintf(line, sizeof(line), "%s %d\n", names[id], (int)result);
    if (fd >= 0 && write(fd, line, (size_t)length) < 0)
        atomic_store(&trace_fd, -1);
    errno = saved_errno;
}

/* The driver looks everywhere before it refuses, and others wait meanwhile [H200: 2 ms]. */
static void refuse_slowly(const struct sim_thread *thread, CUresult result)
{
    if (result == CUDA_ERROR_OUT_OF_MEMORY && thread->holds_lock && sim_settings.refuse_us != 0)
        usleep((useconds_t)sim_settings.refuse_us);
}

CUresult sim_leave(enum sim_call_id id, CUresult result)
{
    struct sim_thread *thread = sim_thread_self();
    refuse_slowly(thread, result);
    if (is_sticky(result) && thread->holds_lock && sim_context_current() != NULL)
        sim_context_break(sim_context_current(), result);
    if (thread->holds_lock) {
        thread->holds_lock = false;
        pthread_mutex_unlock(&sim_lock);
        pthread_sigmask(SIG_SETMASK, &thread->signals, NULL);
    }
    if (atomic_load_explicit(&trace_fd, memory_order_relaxed) >= 0)
        trace_call(id, result);
    return result;
}

__attribute__((constructor)) static void open_trace(void)
{
    sim_settings_load();
    if (sim_settings.trace_path != NULL)
        atomic_store(&trace_fd, open(sim_settings.trace_path,
                                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

/*
 * The child of an initialised process has a driver that refuses everything
 * [H200].  Its lock may be held by a thread that does not exist any more, so
 * nothing there may take it again, cuInit included.
 */
static void mark_forked(void)
{
    if (atomic_load(&phase) == RUNNING)
        atomic_store(&phase, FORKED);
}

/*
 * Runs when the process exits: destructors of libraries loaded before the
 * driver run after this, and find it shut down.
 */
static void shut_down(void)
{
    if (atomic_load(&phase) != RUNNING)
        return;
    atomic_store(&phase, GONE);
    sim_capacity_leave();
}

static CUresult start_once(void)
{
    if (!sim_capacity_open())
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (sim_settings.device_count == 0)
        return CUDA_ERROR_NO_DEVICE;
    pthread_atfork(NULL, NULL, mark_forked);
    atexit(shut_down);
    atomic_store_explicit(&phase, RUNNING, memory_order_release);
    return CUDA_SUCCESS;
}

CUresult sim_start(unsigned flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&phase) == FORKED)
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&sim_lock);
    CUresult result = atomic_load(&phase) == RUNNING ? CUDA_SUCCESS : start_once();
    pthread_mutex_unlock(&sim_lock);
    return result;
}

__attribute__((visibility("default"))) uint64_t gpusim_calls(const char *symbol)
{
    for (unsigned i = 0; i < SIM_CALL_COUNT; i++)
        if (strcmp(names[i], symbol) == 0)
            return atomic_load_explicit(&calls[i], memory_order_relaxed);
    return 0;
}

__attribute__((visibility("default"))) void *gpusim_capacity(void)
{
    return sim_capacity_table();
}
