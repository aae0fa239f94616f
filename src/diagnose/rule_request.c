/* Requests that no device could serve. */
#include "../cuda/error.h"
#include "rule.h"
#include "saturate.h"
#include "wording.h"

#define NEAR_BYTES (16ull << 20)
#define PAGE_BYTES 4096
/* Nothing that anybody builds: a petabyte. */
#define ABSURD_BYTES (1ull << 50)

/* Answers that programs expect and live with: not ready, peers or memory known already. */
static bool is_harmless(int result)
{
    return result == 0 || result == 600 || result == 704 || result == 712;
}

/* The newest error of another kind: ignored, it may have left a wild size behind. */
static const struct gos_event *earlier_error(const struct gos_evidence *evidence)
{
    for (size_t i = evidence->event_count; i > 0; i--) {
        const struct gos_event *event = &evidence->events[i - 1];
        if (event->result != 2 && !is_harmless(event->result))
            return event;
    }
    return NULL;
}

static void say_earlier_error(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_event *event = earlier_error(s->evidence);
    if (event) {
        gos_verdict_say(verdict,
                        gos_wording(s->evidence, "Earlier, %s returned %d (%s: %s).", event->what,
                                    event->result, gos_cuda_error_name(event->result),
                                    gos_cuda_error_text(event->result)));
        gos_verdict_advise(verdict,
                           gos_wording(s->evidence,
                                       "Check the result of %s first: a size computed after a "
                                       "failed call is not a size.",
                                       event->what));
    } else if (s->evidence->first_sticky_error) {
        gos_verdict_say(verdict, gos_wording(s->evidence, "Earlier, a call failed with %d (%s).",
                                             s->evidence->first_sticky_error,
                                             gos_cuda_error_name(s->evidence->first_sticky_error)));
    }
}

static uint64_t away_from(uint64_t bytes, uint64_t power)
{
    return bytes > power ? bytes - power : power - bytes;
}

static bool is_near(uint64_t bytes, uint64_t power)
{
    return away_from(bytes, power) <= NEAR_BYTES;
}

/* What the number looks like to somebody who has seen many of them. */
static const char *shape_of(struct gos_evidence *evidence, uint64_t bytes)
{
    if (bytes >> 63 && !is_near(bytes, 1ull << 63))
        return gos_wording(evidence, "As a signed number it is %lld: a size that went below zero.",
                           (long long)bytes);
    if (is_near(bytes, 1ull << 63))
        return "It lies at 2^63: a signed size at its limit.";
    if (is_near(bytes, 1ull << 32) || is_near(bytes, 1ull << 31))
        return "It lies at a limit of 32-bit numbers: a size that wrapped around.";
    return "";
}

static void say_number(const struct gos_situation *s, struct gos_verdict *verdict)
{
    gos_verdict_say(verdict, gos_wording(s->evidence, "The request in numbers: %llu = 0x%llx.",
                                         (unsigned long long)s->request->bytes,
                                         (unsigned long long)s->request->bytes));
    gos_verdict_say(verdict, shape_of(s->evidence, s->request->bytes));
}

static void advise_arithmetic(const struct gos_situation *s, struct gos_verdict *verdict)
{
    gos_verdict_advise(verdict, "Look at how the size was computed: a negative or uninitialised "
                                "length, a product that overflowed, bytes counted twice.");
    const char *who = s->requester[0] ? s->requester : "the caller";
    gos_verdict_advise(verdict,
                       gos_wording(s->evidence,
                                   "Waiting, freeing or trying again cannot help; %s asked for it.",
                                   who));
}

/* Half of the address space and more is no size on any machine, whatever is asked for. */
bool gos_rule_not_a_size(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!s->out_of_memory || !s->request->bytes_known || s->request->bytes < ABSURD_BYTES)
        return false;
    uint64_t bytes = s->request->bytes;
    verdict->code = GOS_VERDICT_REQUEST_TOO_LARGE;
    verdict->confidence = bytes >> 63 ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    if (bytes >> 63)
        verdict->summary =
            gos_wording(s->evidence,
                        "0x%llx bytes were asked for (%lld when read as signed): not "
                        "a size.",
                        (unsigned long long)bytes, (long long)bytes);
    else
        verdict->summary =
            gos_wording(s->evidence, "%s (0x%llx bytes) were asked for: not a size.",
                        gos_wording_bytes(s->evidence, bytes), (unsigned long long)bytes);
    say_number(s, verdict);
    say_earlier_error(s, verdict);
    advise_arithmetic(s, verdict);
    return true;
}

/* A few devices' worth is a batch that is too large rather than a slip of arithmetic. */
static bool may_be_meant(const struct gos_situation *s)
{
    return s->asked_bytes / 8 <= gos_situation_total_bytes(s) &&
           !shape_of(s->evidence, s->asked_bytes)[0];
}

bool gos_rule_larger_than_device(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!s->on_device || s->diagnosis->need.is_most ||
        s->asked_bytes <= gos_situation_total_bytes(s))
        return false;
    verdict->code = GOS_VERDICT_REQUEST_TOO_LARGE;
    verdict->confidence = GOS_CONFIDENCE_PROVEN;
    verdict->summary = gos_wording(
        s->evidence, "%s were asked for (0x%llx bytes); the whole device has %s.",
        gos_wording_bytes(s->evidence, s->asked_bytes), (unsigned long long)s->asked_bytes,
        gos_wording_bytes(s->evidence, gos_situation_total_bytes(s)));
    say_number(s, verdict);
    say_earlier_error(s, verdict);
    if (may_be_meant(s))
        gos_verdict_advise(verdict, "Ask for less at once: a smaller batch, or parts of it one "
                                    "after the other; or split it over several devices.");
    advise_arithmetic(s, verdict);
    if (!may_be_meant(s))
        gos_verdict_advise(verdict, "If the size is meant, split the data over several devices or "
                                    "work on it in parts.");
    return true;
}

/*
 * Smaller than the device, but more than it could give if everything that we
 * know of were freed.  The context line may hold memory that we do not track,
 * so this is never proven; and where less than half of the device was asked, it
 * is that line which is too large.
 */
bool gos_rule_larger_than_empty(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!s->on_device || !s->strict)
        return false;
    uint64_t most = s->free_bytes + s->tracked_bytes + s->neighbours_bytes + s->hidden_bytes;
    if (s->cost_bytes <= most || s->asked_bytes < gos_situation_total_bytes(s) / 2)
        return false;
    verdict->code = GOS_VERDICT_REQUEST_TOO_LARGE;
    verdict->confidence = GOS_CONFIDENCE_LIKELY;
    verdict->summary = gos_wording(
        s->evidence,
        "%s were asked for; even with everything freed this device gives %s of its %s.",
        gos_wording_bytes(s->evidence, s->asked_bytes), gos_wording_bytes(s->evidence, most),
        gos_wording_bytes(s->evidence, gos_situation_total_bytes(s)));
    gos_verdict_say(verdict, "The rest is taken by the driver and by this process' context and "
                             "modules.");
    gos_verdict_advise(verdict, "Ask for less at once: smaller buffers, or several devices.");
    return true;
}

static bool just_misses(uint64_t bytes, uint64_t power)
{
    return bytes != power && away_from(bytes, power) <= PAGE_BYTES;
}

/* Today's devices hold such a size, so it may be meant: a hint, not a verdict. */
void gos_verdict_say_shape(const struct gos_situation *s, struct gos_verdict *verdict)
{
    uint64_t bytes = s->asked_bytes;
    bool ran_out = verdict->code == GOS_VERDICT_EXHAUSTED_BY_PROCESS ||
                   verdict->code == GOS_VERDICT_EXHAUSTED_BY_OTHERS ||
                   verdict->code == GOS_VERDICT_LEAK;
    bool at_31 = just_misses(bytes, 1ull << 31);
    if (!ran_out || (!at_31 && !just_misses(bytes, 1ull << 32)))
        return;
    gos_verdict_say(verdict, gos_wording(s->evidence,
                                         "The request of %llu = 0x%llx bytes lies just beside "
                                         "2^%d: perhaps a size that wrapped around.",
                                         (unsigned long long)bytes, (unsigned long long)bytes,
                                         at_31 ? 31 : 32));
    gos_verdict_advise(verdict, "Check how the size was computed: it lies just beside a limit of "
                                "32-bit numbers.");
}
