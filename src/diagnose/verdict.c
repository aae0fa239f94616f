/* The rules in order of suspicion, and what every verdict says besides. */
#include "doubt.h"
#include "rule.h"
#include "saturate.h"

#include "wording.h"

/*
 * First what the call itself gives away, then what a person can change at
 * once (unused memory), then who uses the rest; a leak larger than the pieces
 * and the neighbours comes before them, and so does growth of which the pieces
 * are a trifle.  A rule further down is asked
 * only for the runner-up, unless the answer so far is a mere guess.
 */
/* clang-format off */
static gos_rule *const rules[] = {
    gos_rule_injected,
    gos_rule_refused,
    gos_rule_forked,
    gos_rule_in_capture,
    gos_rule_mps_limit,
    gos_rule_driver_or_context,
    gos_rule_not_a_size,
    gos_rule_larger_than_device,
    gos_rule_address_limit,
    gos_rule_host_memory,
    gos_rule_cgroup,
    gos_rule_locked_limit,
    gos_rule_commit_limit,
    gos_rule_map_count,
    gos_rule_address_space,
    gos_rule_first_allocation,
    gos_rule_mps_pinned_limit,
    gos_rule_larger_than_empty,
    gos_rule_pending_free,
    gos_rule_pool_held,
    gos_rule_framework_held,
    gos_rule_outgrown,
    gos_rule_outgrown_pieces,
    gos_rule_blocks_fragmented,
    gos_rule_pool_fragmented,
    gos_rule_pool_pieces,
    gos_rule_shared_memory,
    gos_rule_framework_fragmented,
    gos_rule_others,
    gos_rule_leak,
    gos_rule_cache_opaque,
    gos_rule_process,
    gos_rule_own_limit,
    gos_rule_unexplained,
};
/* clang-format on */
#define RULE_COUNT (sizeof(rules) / sizeof(rules[0]))

void gos_verdict_say(struct gos_verdict *verdict, const char *line)
{
    if (line && line[0] && verdict->evidence_count < GOS_LINES_MAX)
        verdict->evidence[verdict->evidence_count++] = line;
}

void gos_verdict_advise(struct gos_verdict *verdict, const char *line)
{
    if (line && line[0] && verdict->advice_count < GOS_LINES_MAX)
        verdict->advice[verdict->advice_count++] = line;
}

/* The first rule from `from` on that applies; the last one always does. */
static size_t next_applying(const struct gos_situation *s, size_t from, struct gos_verdict *verdict)
{
    for (size_t i = from; i < RULE_COUNT; i++) {
        *verdict = (struct gos_verdict){.summary = ""};
        if (rules[i](s, verdict))
            return i;
    }
    return RULE_COUNT;
}

static void set_runner_up(struct gos_verdict *verdict, const struct gos_verdict *next)
{
    bool is_other = next->code != verdict->code && next->code != GOS_VERDICT_UNEXPLAINED;
    if (is_other && !verdict->has_runner_up) {
        verdict->has_runner_up = true;
        verdict->runner_up = next->code;
    }
}

/* A proof further down beats a guess, which then is the runner-up. */
static void prefer(struct gos_verdict *verdict, struct gos_verdict *next)
{
    bool beats =
        verdict->confidence == GOS_CONFIDENCE_POSSIBLE && next->confidence == GOS_CONFIDENCE_PROVEN;
    if (beats) {
        struct gos_verdict guess = *verdict;
        *verdict = *next;
        set_runner_up(verdict, &guess);
    } else {
        set_runner_up(verdict, next);
    }
}

/* The driver has said what is wrong, and it is not memory. */
static bool is_error(const struct gos_situation *s)
{
    return s->request->result != 0 && !s->out_of_memory;
}

static void choose(const struct gos_situation *s, struct gos_verdict *verdict)
{
    size_t at = next_applying(s, 0, verdict);
    bool undecided = verdict->confidence == GOS_CONFIDENCE_POSSIBLE;
    if (is_error(s) && verdict->confidence == GOS_CONFIDENCE_PROVEN)
        return;
    while (at + 1 < RULE_COUNT && (!verdict->has_runner_up || undecided)) {
        struct gos_verdict next;
        at = next_applying(s, at + 1, &next);
        if (at < RULE_COUNT)
            prefer(verdict, &next);
        undecided = verdict->confidence == GOS_CONFIDENCE_POSSIBLE;
    }
}

static uint64_t short_of(const struct gos_situation *s)
{
    if (!s->device || s->on_host || !s->strict || is_error(s))
        return 0;
    return gos_situation_short_bytes(s);
}

static void add_common(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (verdict->short_bytes == 0)
        verdict->short_bytes = short_of(s);
    if (!verdict->holder) {
        const struct gos_diagnosis *diagnosis = s->diagnosis;
        verdict->holder = diagnosis->holder_count ? diagnosis->holders[0].name : "";
        verdict->holder_bytes = diagnosis->holder_count ? diagnosis->holders[0].live_bytes : 0;
    }
    gos_verdict_say_leak(s, verdict);
    verdict->pending_bytes = s->pending_bytes;
    verdict->idle_bytes = s->idle_bytes + s->own_idle_bytes;
    if (s->out_of_memory && s->request->capture != GOS_CAPTURE_NONE)
        gos_verdict_say(verdict, "A graph was being captured, so that nothing could be tried.");
    gos_verdict_say_shape(s, verdict);
    gos_tried_say(s, verdict);
}

static void say_nothing_failed(struct gos_verdict *verdict)
{
    *verdict = (struct gos_verdict){.code = GOS_VERDICT_UNEXPLAINED,
                                    .confidence = GOS_CONFIDENCE_POSSIBLE,
                                    .summary = "Nothing failed: this is a look at the moment."};
}

void gos_verdict_make(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis)
{
    struct gos_situation situation;
    gos_situation_make(evidence, diagnosis, &situation);
    if (evidence->request.api)
        choose(&situation, &diagnosis->verdict);
    else
        say_nothing_failed(&diagnosis->verdict);
    gos_doubt(evidence, diagnosis);
    add_common(&situation, &diagnosis->verdict);
}
