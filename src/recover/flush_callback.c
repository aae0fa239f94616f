#include "flush_callback.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "../base/lock.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/thread.h"

#define NAME_MAX_BYTES 63

struct row {
    const char *name;          /* permanent */
    gos_flush_function *flush; /* NULL: the row is empty */
    void *arg;
};

static struct gos_lock lock = GOS_LOCK_INIT(GOS_RANK_FLUSH);
static struct row rows[GOS_FLUSH_CALLBACK_MAX];
static _Atomic uint32_t row_count;
static _Atomic uint32_t running; /* 1 + place of the row whose function runs, 0 none; a futex */

static struct row *find(gos_flush_function *flush, const void *arg)
{
    for (size_t i = 0; i < GOS_FLUSH_CALLBACK_MAX; i++)
        if (rows[i].flush == flush && (!flush || rows[i].arg == arg))
            return &rows[i];
    return NULL;
}

/*
 * A row whose function still runs is not given to somebody else: who waits for
 * its end would wait for the wrong one.
 */
static struct row *find_empty(void)
{
    for (size_t i = 0; i < GOS_FLUSH_CALLBACK_MAX; i++)
        if (!rows[i].flush && atomic_load(&running) != i + 1)
            return &rows[i];
    return NULL;
}

static int put(const struct row *added)
{
    int result = 0;

    gos_lock_acquire(&lock);
    struct row *empty = find_empty();
    if (find(added->flush, added->arg))
        result = -EEXIST;
    else if (!empty)
        result = -ENOSPC;
    else
        *empty = *added;
    if (result == 0)
        atomic_fetch_add(&row_count, 1);
    gos_lock_release(&lock);
    return result;
}

int gos_flush_callback_add(const char *name, gos_flush_function *flush, void *arg)
{
    struct row row = {.flush = flush, .arg = arg};

    if (!name || !name[0] || !flush)
        return -EINVAL;
    row.name = gos_arena_intern(name, strnlen(name, NAME_MAX_BYTES));
    return row.name ? put(&row) : -ENOMEM;
}

/* After the host takes a function away it may unload it, so a call of it must have ended. */
static int wait_for_end(uint32_t number)
{
    uint64_t deadline_ns = gos_os.monotonic_ns() + gos_options.flush_budget;

    while (atomic_load(&running) == number && !gos_thread.is_helper) {
        uint64_t now_ns = gos_os.monotonic_ns();

        if (now_ns >= deadline_ns)
            return -EBUSY;
        gos_os.futex_wait((uint32_t *)&running, number, deadline_ns - now_ns);
    }
    return 0;
}

int gos_flush_callback_remove(gos_flush_function *flush, void *arg)
{
    uint32_t number = 0;

    gos_lock_acquire(&lock);
    struct row *row = flush ? find(flush, arg) : NULL;
    if (row) {
        number = (uint32_t)(row - rows) + 1;
        row->flush = NULL;
        atomic_fetch_sub(&row_count, 1);
    }
    gos_lock_release(&lock);
    return row ? wait_for_end(number) : -ENOENT;
}

size_t gos_flush_callback_count(void)
{
    return atomic_load(&row_count);
}

const char *gos_flush_callback_name(size_t at)
{
    gos_lock_acquire(&lock);
    const char *name = rows[at].flush ? rows[at].name : NULL;
    gos_lock_release(&lock);
    return name;
}

static void end(void)
{
    atomic_store(&running, 0);
    gos_os.futex_wake((uint32_t *)&running, INT32_MAX);
}

bool gos_flush_callback_call(size_t at, int device, uint64_t wanted_bytes, int *result)
{
    gos_lock_acquire(&lock);
    struct row row = rows[at];
    if (row.flush)
        atomic_store(&running, (uint32_t)at + 1);
    gos_lock_release(&lock);
    if (!row.flush)
        return false;
    *result = row.flush(row.arg, device, wanted_bytes);
    end();
    return true;
}

void gos_flush_callback_reset_after_fork(void)
{
    gos_lock_reset(&lock);
    atomic_store(&running, 0);
}
