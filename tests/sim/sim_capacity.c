#include "sim_capacity.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX 256
#define TABLE_MAGIC 0x47505553u

struct sim_capacity {
    uint32_t magic;
    pthread_mutex_t lock;
    struct sim_row rows[ROWS_MAX];
};

static struct sim_capacity *table;
static struct sim_row *own;
static sigset_t signals; /* blocked outside; guarded by the lock */

/*
 * Fields of /proc/<pid>/stat after the name, which may itself contain spaces
 * and parentheses: hence the search for the last ')'.
 */
static bool read_stat(int pid, char *state, uint64_t *start_ticks)
{
    char path[32];
    char text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *after = strrchr(text, ')');
    unsigned long long ticks = 0;
    if (after == NULL ||
        sscanf(after + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
               "%*d %llu",
               state, &ticks) != 2)
        return false;
    *start_ticks = ticks;
    return true;
}

/*
 * A zombie has closed its device files already, so it holds nothing.  Whoever
 * asks is alive, and needs no look at its times: emulators make them up.
 */
static bool row_is_alive(const struct sim_row *row)
{
    char state = 'R';
    uint64_t start_ticks = 0;
    if (row->pid == (int32_t)getpid())
        return true;
    if (kill(row->pid, 0) != 0 && errno == ESRCH)
        return false;
    if (!read_stat(row->pid, &state, &start_ticks))
        return true;
    return state != 'Z' && state != 'X' && start_ticks == row->start_ticks;
}

static void sweep_dead_rows(void)
{
    for (unsigned i = 0; i < ROWS_MAX; i++)
        if (table->rows[i].pid != 0 && &table->rows[i] != own && !row_is_alive(&table->rows[i]))
            memset(&table->rows[i], 0, sizeof(table->rows[i]));
}

/*
 * The dead owner's row is consistent enough: each change is one addition.
 * Signals wait, since a handler that calls exit would come here again.
 */
static void lock_table(void)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_mutex_lock(&table->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&table->lock);
    signals = before;
}

static void unlock_table(void)
{
    sigset_t before = signals;
    pthread_mutex_unlock(&table->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void prepare_table(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&table->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    table->magic = TABLE_MAGIC;
}

static void *map_table(int flags, int fd)
{
    void *memory = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, flags, fd, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

/* The file lock only decides who prepares the table; it is not held later. */
static void *map_shared_table(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    flock(fd, LOCK_EX);
    if (ftruncate(fd, sizeof(*table)) == 0)
        table = map_table(MAP_SHARED, fd);
    if (table != NULL && table->magic != TABLE_MAGIC)
        prepare_table();
    flock(fd, LOCK_UN);
    close(fd);
    return table;
}

bool sim_capacity_open(void)
{
    if (table != NULL)
        return true;
    if (sim_settings.state_path != NULL)
        return map_shared_table(sim_settings.state_path) != NULL;
    table = map_table(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (table != NULL)
        prepare_table();
    return table != NULL;
}

struct sim_capacity *sim_capacity_table(void)
{
    return table;
}

void sim_capacity_adopt(struct sim_capacity *other)
{
    table = other;
}

static void name_row(struct sim_row *row)
{
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, row->name, sizeof(row->name) - 1) : 0;
    if (fd >= 0)
        close(fd);
    row->name[length > 0 ? length - 1 : 0] = '\0';
}

/* Of a dead process that had the number which is ours now. */
static void drop_predecessors_row(void)
{
    for (unsigned i = 0; i < ROWS_MAX; i++)
        if (table->rows[i].pid == (int32_t)getpid())
            memset(&table->rows[i], 0, sizeof(table->rows[i]));
}

static struct sim_row *find_free_row(void)
{
    for (unsigned i = 0; i < ROWS_MAX; i++)
        if (table->rows[i].pid == 0)
            return &table->rows[i];
    return NULL;
}

static bool claim_row(void)
{
    char state = 'R';
    if (own != NULL)
        return true;
    drop_predecessors_row();
    sweep_dead_rows();
    struct sim_row *row = find_free_row();
    if (row == NULL)
        return false;
    memset(row, 0, sizeof(*row));
    name_row(row);
    read_stat((int)getpid(), &state, &row->start_ticks);
    row->pid = (int32_t)getpid();
    own = row;
    return true;
}

static uint64_t count_free(int device)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < ROWS_MAX; i++)
        used += table->rows[i].used_bytes[device];
    return used < sim_settings.memory_bytes ? sim_settings.memory_bytes - used : 0;
}

bool sim_capacity_take(int device, uint64_t bytes)
{
    lock_table();
    bool taken = claim_row();
    if (taken && count_free(device) < bytes)
        sweep_dead_rows();
    taken = taken && count_free(device) >= bytes;
    if (taken)
        own->used_bytes[device] += bytes;
    unlock_table();
    return taken;
}

void sim_capacity_give(int device, uint64_t bytes)
{
    lock_table();
    if (own != NULL)
        own->used_bytes[device] -= bytes;
    unlock_table();
}

uint64_t sim_capacity_free_bytes(int device)
{
    lock_table();
    sweep_dead_rows();
    uint64_t bytes = count_free(device);
    unlock_table();
    return bytes;
}

unsigned sim_capacity_rows(int device, struct sim_row *rows, unsigned max)
{
    unsigned count = 0;
    lock_table();
    sweep_dead_rows();
    for (unsigned i = 0; i < ROWS_MAX && count < max; i++)
        if (table->rows[i].pid != 0 && table->rows[i].used_bytes[device] != 0)
            rows[count++] = table->rows[i];
    unlock_table();
    return count;
}

/* A signal handler may end the process on the thread that holds the lock: others sweep then. */
static bool lock_table_for_leaving(void)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec++;
    int result = pthread_mutex_timedlock(&table->lock, &limit);
    if (result == EOWNERDEAD)
        pthread_mutex_consistent(&table->lock);
    return result == 0 || result == EOWNERDEAD;
}

void sim_capacity_leave(void)
{
    if (table == NULL || !lock_table_for_leaving())
        return;
    if (own != NULL)
        memset(own, 0, sizeof(*own));
    own = NULL;
    unlock_table();
}
