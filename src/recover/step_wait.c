#include "step_wait.h"

#include <string.h>

#include "../base/log.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../cuda/driver.h"
#include "../observe/gil.h"

#define NAP_NS 50000000u

/* Beyond the request's size: the driver's 2 MiB blocks, and the last few MiB that it keeps. */
#define MARGIN_BYTES (8ull << 20)
/* Where the size is not known (a kernel's module): enough for most. */
#define UNKNOWN_BYTES (64ull << 20)
/* Numbers of different moments differ by so much without anybody having given anything. */
#define NOISE_BYTES (64ull << 20)

struct neighbours {
    uint64_t pids; /* their numbers, mixed; 0: none is listed */
    uint64_t bytes;
    uint64_t used_ns; /* of the budget, by waiting for them */
};

/*
 * Those that were waited for last.  Guarded by the turn to recover: one thread
 * at a time climbs a ladder.
 */
static struct neighbours last[GOS_DEVICE_MAX];

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

/* The order in which they are listed may change, so what is mixed is added up. */
static uint64_t mixed(uint32_t pid)
{
    return (pid + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct neighbours look(const struct gos_diagnosis *diagnosis)
{
    const struct gos_evidence *evidence = diagnosis->evidence;
    const struct gos_ledger *ledger = &diagnosis->ledgers[diagnosis->device];
    struct neighbours found = {
        .bytes = (uint64_t)(ledger->lines[GOS_LEDGER_CHILDREN].bytes +
                            ledger->lines[GOS_LEDGER_OTHERS].bytes +
                            ledger->lines[GOS_LEDGER_HIDDEN].bytes),
    };

    for (size_t i = 0; i < evidence->process_count; i++)
        if (is_neighbour(&evidence->processes[i], diagnosis->device))
            found.pids += mixed(evidence->processes[i].pid);
    return found;
}

/* The neighbours now, with what they have cost already if they are the same as last. */
static struct neighbours look_again(const struct gos_diagnosis *diagnosis)
{
    const struct neighbours *before = &last[diagnosis->device];
    struct neighbours now = look(diagnosis);

    if (now.pids == before->pids && now.bytes + NOISE_BYTES >= before->bytes)
        now.used_ns = before->used_ns;
    return now;
}

static uint64_t left_ns(const struct neighbours *neighbours)
{
    return gos_options.wait > neighbours->used_ns ? gos_options.wait - neighbours->used_ns : 0;
}

/* --- whether -----------------------------------------------------------------------------------
 */

static bool others_hold_it(const struct gos_verdict *verdict)
{
    return verdict->code == GOS_VERDICT_EXHAUSTED_BY_OTHERS ||
           (verdict->has_runner_up && verdict->runner_up == GOS_VERDICT_EXHAUSTED_BY_OTHERS);
}

/* Only the current context's device can be asked for what is free. */
static bool can_look(int device)
{
    CUdevice current = -1;

    return gos_driver.cuCtxGetDevice && gos_driver.cuCtxGetDevice(&current) == CUDA_SUCCESS &&
           current == device;
}

bool gos_step_wait_may_help(const struct gos_ladder *ladder, const char **why_not)
{
    const struct gos_diagnosis *diagnosis = ladder->diagnosis;
    struct neighbours neighbours = look_again(diagnosis);

    if (!others_hold_it(&diagnosis->verdict))
        *why_not = "not other processes hold what is missing";
    else if (left_ns(&neighbours) == 0)
        *why_not = "GPUOOMSHIM_WAIT is used up: the same processes have stayed through it";
    else if (!can_look(diagnosis->device))
        *why_not = "the device is not that of the current context";
    else
        return true;
    return false;
}

/* --- waiting -----------------------------------------------------------------------------------
 */

static uint64_t wanted_bytes(const struct gos_request *request)
{
    return (request->bytes_known ? request->bytes : UNKNOWN_BYTES) + MARGIN_BYTES;
}

static bool poll(uint64_t bytes, uint64_t deadline_ns)
{
    while (gos_driver_free_bytes() < bytes) {
        uint64_t now_ns = gos_os.monotonic_ns();

        if (now_ns >= deadline_ns)
            return false;
        gos_os.sleep_ns(deadline_ns - now_ns < NAP_NS ? deadline_ns - now_ns : NAP_NS);
    }
    return true;
}

static void say_begin(int device, uint64_t bytes, uint64_t most_ns)
{
    char words[96];
    struct gos_text text = gos_text_on(words, sizeof words);

    gos_text_bytes(&text, bytes);
    gos_text_format(&text, " on GPU %d, for at most ", device);
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
    struct neighbours neighbours = look_again(diagnosis);
    uint64_t most_ns = left_ns(&neighbours);
    uint64_t started_ns = gos_os.monotonic_ns();

    say_begin(diagnosis->device, diagnosis->verdict.short_bytes, most_ns);
    void *released = gos_gil_release();
    bool has_room = poll(wanted_bytes(&diagnosis->evidence->request), started_ns + most_ns);
    gos_gil_retake(released);
    uint64_t waited_ns = gos_os.monotonic_ns() - started_ns;
    neighbours.used_ns += waited_ns;
    last[diagnosis->device] = neighbours;
    say_end(has_room, waited_ns);
    record->result = has_room ? "no help" : "timed out";
    record->reason =
        has_room ? "other processes gave back enough" : "other processes kept their memory";
    return has_room;
}

void gos_step_wait_reset_after_fork(void)
{
    memset(last, 0, sizeof last);
}
