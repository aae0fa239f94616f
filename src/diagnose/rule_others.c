/* Other processes use the memory. */
#include "advice.h"
#include "rule.h"
#include "saturate.h"
#include "setting.h"
#include "wording.h"

#define NAMED_PROCESSES 4

/*
 * Where the list does not have our pid, it may have us under the pid of another
 * namespace, with what we allocated and a context.
 */
static bool may_be_self(const struct gos_situation *s, const struct gos_process_evidence *process)
{
    return process->relation == GOS_PROCESS_UNSEEN && !s->device->own_bytes_known &&
           process->used_bytes >= s->tracked_bytes &&
           process->used_bytes - s->tracked_bytes <= GOS_CONTEXT_ALLOWANCE_BYTES;
}

static bool is_neighbour(const struct gos_situation *s, const struct gos_process_evidence *process)
{
    return process->device == s->device->ordinal && process->relation != GOS_PROCESS_SELF &&
           process->used_bytes != UINT64_MAX && !may_be_self(s, process);
}

/* Larger first; among equals the one listed first. */
static bool comes_before(const struct gos_process_evidence *a, const struct gos_process_evidence *b)
{
    return a->used_bytes > b->used_bytes || (a->used_bytes == b->used_bytes && a < b);
}

/* The largest neighbour that comes after `last` (NULL: the very largest). */
static const struct gos_process_evidence *next_neighbour(const struct gos_situation *s,
                                                         const struct gos_process_evidence *last)
{
    const struct gos_process_evidence *best = NULL;
    for (size_t i = 0; i < s->evidence->process_count; i++) {
        const struct gos_process_evidence *process = &s->evidence->processes[i];
        if (!is_neighbour(s, process) || (last && !comes_before(last, process)))
            continue;
        if (!best || comes_before(process, best))
            best = process;
    }
    return best;
}

static bool is_of_other_user(const struct gos_situation *s,
                             const struct gos_process_evidence *process)
{
    return s->evidence->uid_known && process->relation == GOS_PROCESS_OTHER &&
           process->uid != s->evidence->uid;
}

static const char *relation_words(const struct gos_situation *s,
                                  const struct gos_process_evidence *process)
{
    if (process->zombie)
        return "dead but not yet reaped";
    if (process->mps_server)
        return "what it holds may be its clients'";
    if (is_of_other_user(s, process))
        return gos_wording(s->evidence, "of another user, uid %u", process->uid);
    if (process->relation == GOS_PROCESS_CHILD)
        return "a child of this program";
    if (process->relation == GOS_PROCESS_UNSEEN)
        return "in another container or namespace";
    return "";
}

/* "pid 4712 (loader, a child of this program)"; brackets only around something. */
static const char *process_words(const struct gos_situation *s,
                                 const struct gos_process_evidence *process)
{
    const char *relation = relation_words(s, process);
    bool named = process->name[0] != '\0';
    bool related = relation[0] != '\0';
    return gos_wording(s->evidence, "pid %u%s%s%s%s%s", process->pid, named || related ? " (" : "",
                       process->name, named && related ? ", " : "", relation,
                       named || related ? ")" : "");
}

static void say_processes(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_process_evidence *process = NULL;
    for (int i = 0; i < NAMED_PROCESSES; i++) {
        process = next_neighbour(s, process);
        if (!process)
            return;
        gos_verdict_say(verdict, gos_wording(s->evidence, "%s holds %s.", process_words(s, process),
                                             gos_situation_amount(s, process->used_bytes)));
    }
}

static const char *add_part(const struct gos_situation *s, const char *parts, const char *who,
                            uint64_t bytes)
{
    return bytes ? gos_wording(s->evidence, "%s%s%s %s", parts, parts[0] ? ", " : "", who,
                               gos_situation_amount(s, bytes))
                 : parts;
}

/* "1.07 GiB are outside of this process (own children 600.0 MiB, other processes 500.0 MiB)" */
static const char *outside_words(const struct gos_situation *s)
{
    const char *hidden = s->device->own_bytes_known ? "hidden" : "hidden, perhaps its own context";
    const char *parts =
        add_part(s, "", "own children", gos_situation_line_bytes(s, GOS_LEDGER_CHILDREN));
    parts = add_part(s, parts, "other processes", gos_situation_line_bytes(s, GOS_LEDGER_OTHERS));
    parts = add_part(s, parts, hidden, s->hidden_bytes);
    return gos_wording(s->evidence, "%s are outside of this process (%s)",
                       gos_situation_amount(s, s->neighbours_bytes + s->hidden_bytes), parts);
}

/* The largest of those on the ledger's line of other processes. */
static const struct gos_process_evidence *largest_other(const struct gos_situation *s)
{
    bool all = s->device->own_bytes_known;
    const struct gos_process_evidence *process = next_neighbour(s, NULL);
    while (process && (process->relation == GOS_PROCESS_CHILD ||
                       (!all && (process->relation == GOS_PROCESS_UNSEEN || process->mps_server))))
        process = next_neighbour(s, process);
    return process;
}

/* Whose memory it mostly is decides the words, unless that alone would not do. */
static const char *neighbour_words(const struct gos_situation *s)
{
    uint64_t children = gos_situation_line_bytes(s, GOS_LEDGER_CHILDREN);
    uint64_t others = gos_situation_line_bytes(s, GOS_LEDGER_OTHERS);
    const struct gos_process_evidence *largest = largest_other(s);
    if (gos_greater(s->hidden_bytes, gos_greater(children, others)) < s->missing_bytes)
        return outside_words(s);
    if (s->hidden_bytes > s->neighbours_bytes)
        return gos_wording(
            s->evidence, "%s of the device belong to nobody that can be seen here%s",
            gos_situation_amount(s, s->hidden_bytes),
            s->device->own_bytes_known ? "" : ", or to this process' own context and modules");
    if (children > others)
        return gos_wording(s->evidence, "This program's own child processes hold %s",
                           gos_situation_amount(s, children));
    return gos_wording(s->evidence, "Other processes hold %s (%s%s)",
                       gos_situation_amount(s, others), largest ? "most: " : "",
                       largest ? process_words(s, largest) : "");
}

static void say_shares(const struct gos_situation *s, struct gos_verdict *verdict)
{
    gos_verdict_say(verdict, gos_situation_arithmetic(s));
    say_processes(s, verdict);
    if (s->imported_bytes)
        gos_verdict_say(verdict, gos_wording(s->evidence,
                                             "Of that, %s are mapped here (IPC): this process "
                                             "uses them itself.",
                                             gos_situation_amount(s, s->imported_bytes)));
    if (gos_situation_line_bytes(s, GOS_LEDGER_CHILDREN))
        gos_verdict_say(
            verdict,
            gos_wording(s->evidence, "Own children together: %s.",
                        gos_situation_amount(s, gos_situation_line_bytes(s, GOS_LEDGER_CHILDREN))));
    if (s->hidden_bytes)
        gos_verdict_say(
            verdict, gos_wording(s->evidence,
                                 "Hidden, by subtraction: %s (another container, or a process that "
                                 "the list leaves out%s).",
                                 gos_situation_amount(s, s->hidden_bytes),
                                 s->device->own_bytes_known
                                     ? ""
                                     : "; or this process' own context and modules, for which 1 "
                                       "GiB was set aside"));
    gos_verdict_say(verdict, gos_wording(s->evidence, "This process holds %s of allocations.",
                                         gos_situation_amount(s, s->tracked_bytes)));
}

/* Nobody is told to set what is set; a single device that is visible may have brothers. */
static const char *other_device(const struct gos_situation *s)
{
    const char *visible = gos_setting_get(s->evidence, "CUDA_VISIBLE_DEVICES");
    if (visible)
        return gos_wording(s->evidence,
                           ", or choose other devices (CUDA_VISIBLE_DEVICES is now %s)", visible);
    return ", or use another device (CUDA_VISIBLE_DEVICES)";
}

/* Whose it is, nobody tells; that a neighbour which holds hardly more is its owner is likely. */
static bool is_mapped_here(const struct gos_situation *s,
                           const struct gos_process_evidence *neighbour)
{
    return s->imported_bytes && (!neighbour || s->imported_bytes >= neighbour->used_bytes / 2);
}

static const char *unless_mapped(const struct gos_situation *s)
{
    return s->imported_bytes
               ? gos_wording(s->evidence, " and not the owner of the %s that are mapped here (IPC)",
                             gos_situation_amount(s, s->imported_bytes))
               : "";
}

static void advise_neighbours(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_process_evidence *largest = next_neighbour(s, NULL);
    if (is_mapped_here(s, largest))
        gos_verdict_advise(verdict, gos_wording(s->evidence,
                                                "This process uses %s of that itself, mapped by "
                                                "IPC: free it where it was made, once it is closed "
                                                "here; do not end its owner.",
                                                gos_situation_amount(s, s->imported_bytes)));
    else if (largest && largest->zombie)
        gos_verdict_advise(verdict, gos_wording(s->evidence,
                                                "Reap pid %u: its parent has to wait for it, or "
                                                "has to end.",
                                                largest->pid));
    else if (largest && largest->relation == GOS_PROCESS_CHILD)
        gos_verdict_advise(verdict, "Keep CUDA out of worker processes, or end workers that are "
                                    "done: each holds a context of its own.");
    else if (largest)
        gos_verdict_advise(
            verdict, gos_wording(s->evidence, "%s %s if it is not needed%s%s.",
                                 is_of_other_user(s, largest) ? "Let its owner end" : "End",
                                 process_words(s, largest), unless_mapped(s), other_device(s)));
    gos_verdict_advise(verdict, "On the host, outside of containers: nvidia-smi "
                                "--query-compute-apps=pid,name,used_memory --format=csv");
    if (s->hidden_bytes > s->neighbours_bytes && !s->device->own_bytes_known)
        gos_advise_context(s, verdict);
}

static bool others_suffice(const struct gos_situation *s)
{
    return s->on_device && s->missing_bytes > 0 &&
           s->neighbours_bytes + s->hidden_bytes >= s->missing_bytes;
}

/*
 * A program that grows fails at last for want of less than one request, which a
 * bare context next door would make up for: so who holds less is not the cause.
 */
bool gos_rule_others(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!others_suffice(s) || s->neighbours_bytes + s->hidden_bytes < s->ledger->own_bytes)
        return false;
    bool sure = s->strict && s->neighbours_bytes >= s->missing_bytes + GOS_FREE_DUST_BYTES;
    verdict->code = GOS_VERDICT_EXHAUSTED_BY_OTHERS;
    verdict->confidence = sure ? GOS_CONFIDENCE_PROVEN : GOS_CONFIDENCE_LIKELY;
    verdict->summary =
        gos_wording(s->evidence, "%s; without that the request would fit.", neighbour_words(s));
    say_shares(s, verdict);
    advise_neighbours(s, verdict);
    return true;
}

static void say_too_little(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (s->neighbours_bytes + s->hidden_bytes)
        gos_verdict_say(verdict, gos_wording(s->evidence, "Only %s.", outside_words(s)));
}

void gos_verdict_say_others(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!others_suffice(s)) {
        say_too_little(s, verdict);
        return;
    }
    verdict->has_runner_up = true;
    verdict->runner_up = GOS_VERDICT_EXHAUSTED_BY_OTHERS;
    gos_verdict_say(verdict,
                    gos_wording(s->evidence, "%s: without that this request would have fitted.",
                                neighbour_words(s)));
    advise_neighbours(s, verdict);
}
