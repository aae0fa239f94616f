#include "tried.h"

#include <string.h>

#include "rule.h"
#include "saturate.h"
#include "situation.h"
#include "wording.h"

static bool is_step(const struct gos_step_record *step, const char *name)
{
    return strcmp(step->step, name) == 0;
}

bool gos_step_was_in_vain(const struct gos_step_record *step)
{
    return strcmp(step->result, "no help") == 0 || strcmp(step->result, "timed out") == 0 ||
           strcmp(step->result, "error") == 0;
}

/* A sync that comes a second time waits for what the first one left. */
static void add(struct gos_tried *tried, const struct gos_step_record *step)
{
    bool is_sync = is_step(step, "sync");
    bool is_trim = is_step(step, "trim");

    tried->returned_bytes = gos_plus(tried->returned_bytes, step->freed_bytes);
    if (is_sync || is_trim)
        tried->pooled_bytes = gos_plus(tried->pooled_bytes, step->freed_bytes);
    if (is_step(step, "flush"))
        tried->flushed_bytes = gos_plus(tried->flushed_bytes, step->freed_bytes);
    tried->is_drained = tried->is_drained || (is_sync && step->is_whole);
    tried->is_trimmed = tried->is_trimmed || (is_trim && step->is_whole);
}

void gos_tried_make(const struct gos_diagnosis *diagnosis, struct gos_tried *tried)
{
    *tried = (struct gos_tried){
        .trim_helped = diagnosis->helped && is_step(diagnosis->helped, "trim"),
    };
    for (size_t i = 0; i < diagnosis->step_count; i++)
        if (gos_step_was_in_vain(&diagnosis->steps[i]))
            add(tried, &diagnosis->steps[i]);
}

static bool names(const struct gos_step_record *step, const char *library)
{
    for (size_t i = 0; i < step->asked_count; i++)
        if (strcmp(step->asked[i], library) == 0)
            return true;
    return false;
}

bool gos_tried_asked(const struct gos_diagnosis *diagnosis, const char *library)
{
    for (size_t i = 0; i < diagnosis->step_count; i++)
        if (gos_step_was_in_vain(&diagnosis->steps[i]) && names(&diagnosis->steps[i], library))
            return true;
    return false;
}

/* --- words -------------------------------------------------------------------------------------
 */

static const char *deed(const struct gos_step_record *step)
{
    static const struct {
        const char *step;
        const char *words;
    } deeds[] = {
        {"reserve", "The reserve was given up"},
        {"sync", "The streams with freed memory were waited for"},
        {"trim", "Idle pools were trimmed"},
        {"flush", "Caches were asked to give back what they do not use"},
        {"wait", "Other processes were waited for"},
        {"fallback", "Other memory was tried"},
    };

    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        if (is_step(step, deeds[i].step))
            return deeds[i].words;
    return step->step;
}

static const char *outcome(const struct gos_situation *s, const struct gos_step_record *step)
{
    if (is_step(step, "fallback"))
        return "it could not be had";
    if (!step->freed_bytes)
        return "nothing came back";
    return gos_wording(s->evidence, "%s came back, %s", gos_situation_amount(s, step->freed_bytes),
                       s->was_taken ? "and somebody else was quicker" : "too little");
}

static const char *line(const struct gos_situation *s, const struct gos_step_record *step)
{
    bool has_reason = step->reason && step->reason[0];

    return gos_wording(s->evidence, "%s%s%s%s: %s.", deed(step), has_reason ? " (" : "",
                       has_reason ? step->reason : "", has_reason ? ")" : "", outcome(s, step));
}

/* What does not fit any more is the last of the old lines. */
static void insert(struct gos_verdict *verdict, size_t at, const char *text)
{
    if (at > verdict->evidence_count)
        at = verdict->evidence_count;
    if (at >= GOS_LINES_MAX || !text[0])
        return;
    if (verdict->evidence_count < GOS_LINES_MAX)
        verdict->evidence_count++;
    memmove(&verdict->evidence[at + 1], &verdict->evidence[at],
            (verdict->evidence_count - 1 - at) * sizeof verdict->evidence[0]);
    verdict->evidence[at] = text;
}

void gos_tried_say(const struct gos_situation *s, struct gos_verdict *verdict)
{
    size_t at = 1;

    for (size_t i = 0; i < s->diagnosis->step_count; i++)
        if (gos_step_was_in_vain(&s->diagnosis->steps[i]))
            insert(verdict, at++, line(s, &s->diagnosis->steps[i]));
}
