#include "state.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "../base/hot.h"
#include "../base/lock.h"
#include "../base/log.h"
#include "../base/loss.h"
#include "../base/memory.h"
#include "../base/module.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/phdr_walk.h"
#include "../base/thread.h"
#include "../cuda/driver.h"
#include "../cuda/entrypoint.h"
#include "../cuda/nvml.h"
#include "../observe/observe.h"
#include "../recover/reserve.h"
#include "../report/report.h"
#include "../track/event.h"
#include "../track/history.h"
#include "../track/pool.h"
#include "../track/python_frames.h"
#include "../track/registry.h"
#include "../track/site.h"
#include "../track/unwind.h"
#include "../track/vmm.h"
#include "failure.h"
#include "rehearsal.h"
#include "torch_word.h"

/* glibc's; pthread_atfork and atexit are thin wrappers of these in libc_nonshared. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);
int __cxa_atexit(void (*function)(void *), void *arg, void *dso);
int __cxa_at_quick_exit(void (*function)(void *), void *dso);
extern void *__dso_handle;

GOS_READ_MOSTLY _Atomic int gos_shim_mode_now = GOS_SHIM_UNSTARTED;
static _Atomic int initialised_pid;
static _Atomic int settings_read; /* 0 no, 1 being read, 2 read */
static struct gos_lock settings_lock = GOS_LOCK_INIT(GOS_RANK_TURN);

static void read_settings(void)
{
    gos_lock_acquire(&settings_lock);
    if (atomic_load(&settings_read) != 2) {
        gos_options_load(environ);
        atomic_store(&settings_read, 2);
    }
    gos_lock_release(&settings_lock);
}

bool gos_shim_enabled(void)
{
    gos_shim_notice_fork();
    if (atomic_load_explicit(&settings_read, memory_order_acquire) != 2)
        read_settings();
    return !gos_options.disable;
}

int gos_shim_initialised_pid(void)
{
    return atomic_load_explicit(&initialised_pid, memory_order_relaxed);
}

/*
 * The child has one thread and a driver that will not work.  Whatever another
 * thread of the parent was doing inside us when it forked, the child starts
 * from nothing: no lock of the parent is waited for, no record is kept.  The
 * order is that of the layers.  The loader's lock cannot be reset, only left
 * alone; a child whose parent had not used CUDA yet needs the loader anyway.
 */
static void start_afresh_in_child(void)
{
    if (atomic_load(&initialised_pid) != 0)
        gos_phdr_stop();
    gos_lock_reset(&settings_lock);
    gos_memory_reset_after_fork();
    gos_thread_reset_after_fork();
    gos_module_reset_after_fork();
    gos_nvml_reset_after_fork();
    gos_event_reset_after_fork();
    gos_registry_reset_after_fork();
    gos_history_reset_after_fork();
    gos_vmm_reset_after_fork();
    gos_pool_reset_after_fork();
    gos_site_reset_after_fork();
    gos_unwind_reset_after_fork();
    gos_python_reset_after_fork();
    gos_observe_reset_after_fork();
    gos_report_reset_after_fork();
    gos_failure_reset_after_fork();
    gos_rehearsal_reset_after_fork();
    gos_torch_reset_after_fork();
}

_Atomic bool gos_shim_watches_fork;
static _Atomic int
    process; /* whose threads hold the locks: a pid, negative while it starts afresh */

/*
 * The handler is registered by cuInit, not in dlsym, where glibc could have to
 * allocate for it.  Until then the pid tells.
 */
void gos_shim_notice_fork_slow(void)
{
    int self = gos_os.pid();
    int owner = atomic_load(&process);

    while (owner != self) {
        if (owner == -self) {
            gos_os.sleep_ns(1000);
            owner = atomic_load(&process);
        } else if (atomic_compare_exchange_strong(&process, &owner, -self)) {
            if (owner != 0)
                start_afresh_in_child();
            atomic_store(&process, self);
            return;
        }
    }
}

static void watch_fork(void)
{
    __register_atfork(NULL, NULL, start_afresh_in_child, &__dso_handle);
    atomic_store(&gos_shim_watches_fork, true);
}

/*
 * Registered after the driver's own handlers, so it runs before them: the
 * driver still answers.  What the host frees later, from static destructors,
 * is neither a leak nor an error.
 *
 * A signal handler may call exit while its thread is inside us, holding locks
 * that nobody will release any more: then the end is silent.
 */
static void end(void *unused)
{
    (void)unused;
    if (!gos_shim_active())
        return;
    if (gos_thread.depth > 0) {
        atomic_store(&gos_shim_mode_now, GOS_SHIM_PASSIVE);
        return;
    }
    gos_thread.depth++;
    gos_failure_at_exit();
    if (gos_shim_initialised_pid() == gos_os.pid())
        gos_rehearsal_close();
    gos_thread.depth--;
    atomic_store(&gos_shim_mode_now, GOS_SHIM_PASSIVE);
}

/* What is loaded here reads files of its own and leaves its errno behind. */
static void open_helpers(void)
{
    int saved = errno;

    gos_thread.depth++;
    gos_driver_bind();
    gos_unwind_open();
    gos_nvml_open();
    gos_observe_at_first_use();
    (void)gos_memory_keep_ballast();
    gos_thread.depth--;
    errno = saved;
}

void gos_shim_start(void)
{
    int unstarted = GOS_SHIM_UNSTARTED;
    bool enabled = gos_shim_enabled();

    if (!atomic_compare_exchange_strong(&gos_shim_mode_now, &unstarted,
                                        enabled ? GOS_SHIM_ACTIVE : GOS_SHIM_PASSIVE))
        return;
    if (!enabled)
        return;
    watch_fork();
    atomic_store(&initialised_pid, gos_os.pid());
    gos_reserve_start();
    gos_entrypoint_bind();
    open_helpers();
    gos_report_drafts_adopt();
    gos_rehearsal_open();
    __cxa_atexit(end, NULL, &__dso_handle);
    __cxa_at_quick_exit(end, &__dso_handle);
    gos_log(GOS_LOG_INFO, "watching; stacks by %s", gos_unwind_name());
}
