#include "step_wait.h"

#include <string.h>

#include "../base/log.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../cuda/nvml.h"
#include "../diagnose/saturate.h"
#include "../diagnose/situation.h"
#include "../observe/device_state.h"
#include "../observe/gil.h"

#define NAP_NS 50000000u

/* Beyond the request's size: the driver's 2 MiB blocks, and the last few MiB that it keeps. */
#define MARGIN_BYTES (8ull << 20)
/* Numbers of different moments differ by so much without anybody having given anything. */
#define NOISE_BYTES (64ull << 20)

/* Of what nobody is named for. */
#define NOBODY 0

/*
 * Those that were waited for last.  Guarded by the turn to recover: one thread
 * at a time climbs a ladder.
 */
static struct neighbours {
    uint32_t pids[GOS_NVML_PROCESS_MAX + 1];
    size_t count;
    uint64_t bytes;         /* that they held, all together */
    uint64_t missing_bytes; /* that one of them should have given back */
    uint64_t used_ns;       /* of the budget, by waiting for them */
} last[GOS_DEVICE_MAX];

bool gos_step_wait_is_asked_for(void)
{
    return gos_options.wait > 0;
}

uint64_t gos_step_wait_longest_ns(void)
{
    return gos_options.retry ? gos_options.wait : 0;
}

/* --- who they are ------------------------------------------------------------------------------
 */

static bool is_neighbour(const struct gos_process_evidence *process, int device)
{
    return process->device == device && process->relation != GOS_PROCESS_SELF;
}

static uint64_t line_bytes(const struct gos_diagnosis *diagnosis, enum gos_ledger_line line)
{
    return (uint64_t)diagnosis->ledgers[diagnosis->device].lines[line].bytes;
}

static uint64_t held_bytes(const struct gos_diagnosis *diagnosis)
{
    return line_bytes(diagnosis, GOS_LEDGER_CHILDREN) + line_bytes(diagnosis, GOS_LEDGER_OTHERS) +
           line_bytes(diagnosis, GOS_LEDGER_HIDDEN);
}

static uint64_t wanted_bytes(const struct gos_diagnosis *diagnosis)
{
    return gos_plus(gos_situation_cost_bytes(&diagnosis->evidence->request), MARGIN_BYTES);
}

static uint64_t missing_bytes(const struct gos_diagnosis *diagnosis)
{
    return gos_beyond(wanted_bytes(diagnosis), line_bytes(diagnosis, GOS_LEDGER_FREE));
}

/* Where pids have no numbers, what is hidden is theirs; the lowest pid stands for them. */
static uint32_t hidden_pid(const struct gos_diagnosis *diagnosis)
{
    const struct gos_evidence *evidence = diagnosis->evidence;
    uint32_t lowest = NOBODY;

    for (size_t i = 0; i < evidence->process_count; i++) {
        const struct gos_process_evidence *process = &evidence->processes[i];

        if (is_neighbour(process, diagnosis->device) && process->used_bytes == UINT64_MAX &&
            (lowest == NOBODY || process->pid < lowest))
            lowest = process->pid;
    }
    return lowest;
}

static bool includes(const struct neighbours *neighbours, uint32_t pid)
{
    for (size_t i = 0; i < neighbours->count; i++)
        if (neighbours->pids[i] == pid)
            return true;
    return false;
}

static uint64_t newcomers_bytes(const struct gos_diagnosis *diagnosis,
                                const struct neighbours *before)
{
    const struct gos_evidence *evidence = diagnosis->evidence;
    uint64_t bytes =
        includes(before, hidden_pid(diagnosis)) ? 0 : line_bytes(diagnosis, GOS_LEDGER_HIDDEN);

    for (size_t i = 0; i < evidence->process_count; i++) {
        const struct gos_process_evidence *process = &evidence->processes[i];

        if (is_neighbour(process, diagnosis->device) && process->used_bytes != UINT64_MAX &&
            !includes(before, process->pid))
            bytes = gos_plus(bytes, process->used_bytes);
    }
    return bytes;
}

/*
 * Small processes come and go beside the one that has the memory.  It is
 * another story only when newcomers could give what is missing, or when those
 * of last time have given so much as was missing then.
 */
static bool is_another_story(const struct gos_diagnosis *diagnosis, const struct neighbours *before)
{
    uint64_t given_bytes = gos_beyond(before->bytes, held_bytes(diagnosis));

    return given_bytes > gos_greater(before->missing_bytes, NOISE_BYTES) ||
           newcomers_bytes(diagnosis, before) >= gos_greater(missing_bytes(diagnosis), NOISE_BYTES);
}

static uint64_t used_ns(const struct gos_diagnosis *diagnosis)
{
    const struct neighbours *before = &last[diagnosis->device];

    return is_another_story(diagnosis, before) ? 0 : before->used_ns;
}

static uint64_t left_ns(const struct gos_diagnosis *diagnosis)
{
    return gos_beyond(gos_options.wait, used_ns(diagnosis));
}

static void add(struct neighbours *neighbours, uint32_t pid)
{
    if (neighbours->count < sizeof neighbours->pids / sizeof neighbours->pids[0])
        neighbours->pids[neighbours->count++] = pid;
}

static void remember(const struct gos_diagnosis *diagnosis, uint64_t spent_ns)
{
    const struct gos_evidence *evidence = diagnosis->evidence;
    struct neighbours *now = &last[diagnosis->device];

    now->used_ns = used_ns(diagnosis) + spent_ns;
    now->bytes = held_bytes(diagnosis);
    now->missing_bytes = missing_bytes(diagnosis);
    now->count = 0;
    add(now, hidden_pid(diagnosis));
    for (size_t i = 0; i < evidence->process_count; i++)
        if (is_neighbour(&evidence->processes[i], diagnosis->device))
            add(now, evidence->processes[i].pid);
}

/* --- whether -----------------------------------------------------------------------------------
 */

static bool others_hold_it(const struct gos_verdict *verdict)
{
    return verdict->code == GOS_VERDICT_EXHAUSTED_BY_OTHERS ||
           (verdict->has_runner_up && verdict->runner_up == GOS_VERDICT_EXHAUSTED_BY_OTHERS);
}

static bool can_look(int device)
{
    uint64_t bytes;

    return gos_device_state_free(device, &bytes) == 0;
}

bool gos_step_wait_may_help(const struct gos_ladder *ladder, const char **why_not)
{
    const struct gos_diagnosis *diagnosis = ladder->diagnosis;

    if (!others_hold_it(&diagnosis->verdict))
        *why_not = "not other processes hold what is missing";
    else if (left_ns(diagnosis) == 0)
        *why_not = "GPUOOMSHIM_WAIT is used up: the same processes have stayed through it";
    else if (!can_look(diagnosis->device))
        *why_not = "nobody tells what is free of that device: it is not the current one";
    else
        return true;
    return false;
}

/* --- waiting -----------------------------------------------------------------------------------
 */

static bool has_free(int device, uint64_t bytes)
{
    uint64_t free_bytes;

    return gos_device_state_free(device, &free_bytes) == 0 && free_bytes >= bytes;
}

/* 0: nobody tells. */
static uint64_t free_of(int device)
{
    uint64_t bytes = 0;

    return gos_device_state_free(device, &bytes) == 0 ? bytes : 0;
}

static bool poll(int device, uint64_t bytes, uint64_t deadline_ns)
{
    while (!has_free(device, bytes)) {
        uint64_t now_ns = gos_os.monotonic_ns();

        if (now_ns >= deadline_ns)
            return false;
        gos_os.sleep_ns(deadline_ns - now_ns < NAP_NS ? deadline_ns - now_ns : NAP_NS);
    }
    return true;
}

/* Of a kernel or a context it is not known how much it is short by. */
static void say_begin(const struct gos_diagnosis *diagnosis, uint64_t most_ns)
{
    char words[96];
    struct gos_text text = gos_text_on(words, sizeof words);

    if (diagnosis->verdict.short_bytes)
        gos_text_bytes(&text, diagnosis->verdict.short_bytes);
    else
        gos_text_put(&text, "some memory");
    gos_text_format(&text, " on GPU %d, for at most ", diagnosis->device);
    gos_text_duration(&text, most_ns);
    gos_log(GOS_LOG_NOTICE, "waiting for other processes to give back %s (GPUOOMSHIM_WAIT)", words);
}

static void say_end(bool has_room, uint64_t waited_ns)
{
    char words[32];
    struct gos_text text = gos_text_on(words, sizeof words);

    gos_text_duration(&text, waited_ns);
    gos_log(GOS_LOG_NOTICE, has_room ? "there is room after %s" : "gave up waiting after %s",
            words);
}

bool gos_step_wait_run(struct gos_ladder *ladder, struct gos_step_record *record)
{
    const struct gos_diagnosis *diagnosis = ladder->diagnosis;
    uint64_t most_ns = left_ns(diagnosis);
    uint64_t started_ns = gos_os.monotonic_ns();
    uint64_t before_bytes = free_of(diagnosis->device);

    say_begin(diagnosis, most_ns);
    void *released = gos_gil_release();
    bool has_room = poll(diagnosis->device, wanted_bytes(diagnosis), started_ns + most_ns);
    gos_gil_retake(released);
    uint64_t waited_ns = gos_os.monotonic_ns() - started_ns;
    remember(diagnosis, waited_ns);
    say_end(has_room, waited_ns);
    record->given_bytes = gos_beyond(free_of(diagnosis->device), before_bytes);
    record->result = has_room ? "no help" : "timed out";
    record->reason =
        has_room ? "other processes gave back enough" : "other processes kept their memory";
    return has_room;
}

void gos_step_wait_reset_after_fork(void)
{
    memset(last, 0, sizeof last);
}
