/*
 * What processes left that ended before they could tell: drafts become reports.
 *
 * Any file may lie in the directory, and another process may be doing the same:
 * each draft is claimed by renaming it, with our number in its name, and whoever
 * comes later leaves it alone while we live.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "../base/log.h"
#include "../base/options.h"
#include "../base/os.h"
#include "../base/text.h"
#include "draft.h"
#include "outputs.h"

#define LIST_BYTES (32u * 1024u)
#define ENTRIES_MAX 4096u
#define NAMES_MAX 16u
#define BUDGET_NS 5000000u
#define NAME_BYTES 256u
#define CLAIM ".claimed-by-"
#define EXTENSION ".draft"
#define FOUND_WITHIN_BYTES 1024u /* of the JSON, all of which is ours */

/* As getdents64 gives it. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};
enum { TYPE_UNKNOWN = 0, TYPE_REGULAR = 8 };

struct search {
    const char *directory;
    struct gos_scratch scratch;
    uint64_t deadline_ns;
    char (*names)[NAME_BYTES];
    unsigned name_count;
    unsigned adopted_count;
    char path[GOS_PATH_BYTES]; /* of the last one that was adopted */
};

/* gpuoomshim.HOST.PID.NUMBER[.claimed-by-PID].draft, where HOST may have more dots. */
struct draft_name {
    char host[NAME_BYTES];
    char original[NAME_BYTES]; /* without a claim */
    int pid;
    int claimed_by; /* 0: nobody */
};

/* --- names --- */

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);

    return length > end_length && strcmp(name + length - end_length, end) == 0;
}

/* The number behind the last dot, which goes; -1 where there is none. */
static int cut_number(char *name, const char *before)
{
    uint64_t number = 0;
    int error = 0;
    char *found = NULL;

    for (char *at = name; (at = strstr(at, before)) != NULL; at++)
        found = at;
    const char *end = found ? gos_text_parse_digits(found + strlen(before), &number, &error) : NULL;
    if (!end || *end || number > INT32_MAX)
        return -1;
    *found = '\0';
    return (int)number;
}

static bool parse(struct draft_name *parsed, const char *name)
{
    static const char prefix[] = "gpuoomshim.";
    struct gos_text original = gos_text_on(parsed->original, sizeof parsed->original);
    char rest[NAME_BYTES];
    struct gos_text text = gos_text_on(rest, sizeof rest);

    gos_text_put_n(&text, name, strlen(name) - strlen(EXTENSION));
    parsed->claimed_by = cut_number(rest, CLAIM);
    parsed->claimed_by = parsed->claimed_by < 0 ? 0 : parsed->claimed_by;
    gos_text_format(&original, "%s" EXTENSION, rest);
    if (strncmp(rest, prefix, strlen(prefix)) != 0 || cut_number(rest, ".") < 0)
        return false;
    parsed->pid = cut_number(rest, ".");
    if (parsed->pid < 0 || strlen(rest) <= strlen(prefix))
        return false;
    text = gos_text_on(parsed->host, sizeof parsed->host);
    gos_text_put(&text, rest + strlen(prefix));
    return true;
}

static bool join(char path[GOS_PATH_BYTES], const char *directory, const char *name)
{
    struct gos_text text = gos_text_on(path, GOS_PATH_BYTES);

    gos_text_format(&text, "%s/%s", directory, name);
    return !text.truncated;
}

/* --- what lies there --- */

static int open_regular(const char *path)
{
    struct gos_file_status status;
    int fd = gos_os.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

    if (fd < 0)
        return fd;
    int result = gos_os.status(fd, &status);
    bool is_ours =
        result == 0 && status.is_regular && status.user == gos_os.user() && status.link_count == 1;
    if (is_ours)
        return fd;
    (void)gos_os.close(fd);
    return result < 0 ? result : -EPERM;
}

static bool has_inode(const char *path, uint64_t inode)
{
    struct gos_file_status status = {.inode = 0};
    int fd = gos_os.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

    if (fd < 0)
        return false;
    int result = gos_os.status(fd, &status);
    (void)gos_os.close(fd);
    return result == 0 && inode != 0 && status.inode == inode;
}

/* An earlier program of this very process (exec) has ended, too. */
static bool has_ended(const struct gos_owner *owner, const char *path)
{
    enum gos_owner_state owner_state = gos_owner_look(owner);

    if (owner_state == GOS_OWNER_RUNS && owner->pid == gos_os.pid())
        return !gos_draft_is_own(path);
    return owner_state == GOS_OWNER_ENDED;
}

/* --- one draft --- */

struct found {
    const struct draft_name *name;
    const struct gos_draft *draft;
    uint32_t forms;
    struct gos_report report; /* its number and paths */
};

static int name_files(struct found *found, const char *directory, uint32_t number)
{
    struct gos_file_name name = {.directory = directory,
                                 .host = found->name->host,
                                 .rank = -1,
                                 .pid = found->name->pid,
                                 .number = number};
    struct gos_report *report = &found->report;
    int result = 0;

    report->number = number;
    report->text_path[0] = report->json_path[0] = '\0';
    if (found->forms & GOS_REPORT_TEXT)
        result = gos_files_name(report->text_path, &name, "txt");
    if (result == 0 && (found->forms & GOS_REPORT_JSON))
        result = gos_files_name(report->json_path, &name, "json");
    return result;
}

/* Did its process get as far as to give all files their names?  If not, the names go again. */
static bool was_published(struct found *found, const char *directory)
{
    const struct gos_draft_slot *slot = found->draft->slot;
    struct gos_report *report = &found->report;

    if (!slot->is_publishing || name_files(found, directory, slot->new_number) < 0)
        return false;
    bool has_text = has_inode(report->text_path, slot->inodes[0]);
    bool has_json = has_inode(report->json_path, slot->inodes[1]);
    bool is_whole = (has_text || !report->text_path[0]) && (has_json || !report->json_path[0]);
    bool is_renumbered = slot->new_number != slot->told_number;
    if (!is_whole && is_renumbered)
        gos_files_remove(has_text ? report->text_path : "", has_json ? report->json_path : "");
    if (is_whole && is_renumbered && slot->told_number &&
        name_files(found, directory, slot->told_number) == 0)
        gos_files_remove(report->text_path, report->json_path);
    return is_whole;
}

struct piece {
    const char *data;
    size_t bytes;
};

/* The words with one piece of them, from..to, replaced. */
static struct piece replace(struct gos_scratch *scratch, struct piece words, size_t from, size_t to,
                            const struct gos_text *by)
{
    size_t bytes = words.bytes - (to - from) + by->length;
    char *copy = gos_scratch_alloc(scratch, bytes);

    if (!copy)
        return words;
    memcpy(copy, words.data, from);
    memcpy(copy + from, by->data, by->length);
    memcpy(copy + from + by->length, words.data + to, words.bytes - to);
    return (struct piece){copy, bytes};
}

/* Below the title. */
static struct piece say_found_in_text(struct gos_scratch *scratch, struct piece words, uint64_t now)
{
    char line[128];
    struct gos_text text = gos_text_on(line, sizeof line);
    const char *title_end = memchr(words.data, '\n', words.bytes);
    size_t from = title_end ? (size_t)(title_end - words.data) + 1 : words.bytes;
    const char *line_end = memchr(words.data + from, '\n', words.bytes - from);
    size_t to = line_end ? (size_t)(line_end - words.data) : from;

    gos_document_found_line(&text, now);
    if (to - from < strlen(GOS_DOCUMENT_DRAFT_LINE) ||
        memcmp(words.data + from, GOS_DOCUMENT_DRAFT_LINE, strlen(GOS_DOCUMENT_DRAFT_LINE)) != 0)
        return words;
    return replace(scratch, words, from, to, &text);
}

static struct piece say_found_in_json(struct gos_scratch *scratch, struct piece words, uint64_t now)
{
    char field[64];
    struct gos_text text = gos_text_on(field, sizeof field);
    size_t length = strlen(GOS_DOCUMENT_NOT_FOUND);

    gos_document_found_field(&text, now);
    for (size_t at = 0; at + length < words.bytes && at < FOUND_WITHIN_BYTES; at++)
        if (memcmp(words.data + at, GOS_DOCUMENT_NOT_FOUND, length) == 0)
            return replace(scratch, words, at, at + length, &text);
    return words;
}

static int publish(struct search *search, struct found *found)
{
    const struct gos_draft_slot *slot = found->draft->slot;
    uint64_t now = gos_os.wall_ns();
    struct piece text = {found->draft->data[0], slot->bytes[0]};
    struct piece json = {found->draft->data[1], slot->bytes[1]};

    text = say_found_in_text(&search->scratch, text, now);
    json = say_found_in_json(&search->scratch, json, now);
    const struct gos_contents contents = {
        .forms = found->forms,
        .name = {.host = found->name->host, .rank = -1, .pid = found->name->pid},
        .data = {text.data, json.data},
        .bytes = {text.bytes, json.bytes},
    };
    int result = 0;
    if (slot->told_number)
        result = name_files(found, search->directory, slot->told_number);
    else
        found->report = (struct gos_report){.number = 0};
    if (result == 0)
        result = gos_outputs_write(&found->report, &contents, &search->scratch, search->directory);
    if (result == 0) {
        const struct gos_report *report = &found->report;
        struct gos_text path = gos_text_on(search->path, sizeof search->path);
        gos_text_put(&path, report->text_path[0] ? report->text_path : report->json_path);
        search->adopted_count++;
    }
    return result;
}

static int claim(char claimed[GOS_PATH_BYTES], const struct search *search,
                 const struct draft_name *name, const char *path)
{
    struct gos_text text = gos_text_on(claimed, GOS_PATH_BYTES);

    gos_text_format(&text, "%s/%.*s" CLAIM "%d" EXTENSION, search->directory,
                    (int)(strlen(name->original) - strlen(EXTENSION)), name->original,
                    gos_os.pid());
    return text.truncated ? -ENAMETOOLONG : gos_os.rename(path, claimed);
}

/* What cannot be published now keeps its old name, for the next start. */
static void adopt_claimed(struct search *search, struct found *found, const char *claimed)
{
    char original[GOS_PATH_BYTES];

    if (was_published(found, search->directory) || publish(search, found) == 0)
        (void)gos_os.unlink(claimed);
    else if (join(original, search->directory, found->name->original))
        (void)gos_os.rename(claimed, original);
}

static void adopt(struct search *search, int fd, const struct draft_name *name, const char *path)
{
    static const uint32_t both = GOS_REPORT_TEXT | GOS_REPORT_JSON;
    char claimed[GOS_PATH_BYTES];
    struct gos_draft draft;
    int result = gos_draft_read(fd, &draft, &search->scratch);

    if ((result != 0 && result != -ENODATA) || !has_ended(&draft.header.owner, path))
        return;
    if (result == -ENODATA) {
        (void)gos_os.unlink(path);
        return;
    }
    if (claim(claimed, search, name, path) < 0)
        return;
    uint32_t forms = draft.slot->forms & both;
    struct found found = {.name = name, .draft = &draft, .forms = forms ? forms : both};
    adopt_claimed(search, &found, claimed);
}

static void look_at(struct search *search, const char *file_name)
{
    struct draft_name name;
    char path[GOS_PATH_BYTES];

    if (!parse(&name, file_name) || !join(path, search->directory, file_name))
        return;
    if (name.claimed_by && name.claimed_by != gos_os.pid() && gos_owner_pid_runs(name.claimed_by))
        return;
    int fd = open_regular(path);
    if (fd < 0)
        return;
    adopt(search, fd, &name, path);
    (void)gos_os.close(fd);
}

/* --- the directory --- */

static bool is_over(const struct search *search)
{
    return gos_os.monotonic_ns() >= search->deadline_ns;
}

static void note(struct search *search, const struct entry *entry)
{
    bool may_be = entry->type == TYPE_REGULAR || entry->type == TYPE_UNKNOWN;

    if (!may_be || search->name_count == NAMES_MAX || strlen(entry->name) >= NAME_BYTES ||
        strncmp(entry->name, "gpuoomshim.", 11) != 0 || !ends_with(entry->name, EXTENSION))
        return;
    struct gos_text text = gos_text_on(search->names[search->name_count++], NAME_BYTES);
    gos_text_put(&text, entry->name);
}

/* All names first: what is renamed meanwhile could be listed twice. */
static void collect(struct search *search, int fd)
{
    char *buffer = gos_scratch_alloc(&search->scratch, LIST_BYTES);
    unsigned seen = 0;

    while (buffer && seen < ENTRIES_MAX && (seen == 0 || !is_over(search))) {
        ssize_t bytes = gos_os.list(fd, buffer, LIST_BYTES);
        if (bytes <= 0)
            return;
        for (ssize_t at = 0; at < bytes; seen++) {
            const struct entry *entry = (const void *)(buffer + at);
            note(search, entry);
            at += entry->bytes;
        }
    }
}

static int search_in(struct search *search, const char *directory)
{
    int fd = gos_os.open(directory, O_RDONLY | O_DIRECTORY, 0);

    if (fd < 0)
        return fd;
    search->directory = directory;
    search->names = gos_scratch_alloc(&search->scratch, NAMES_MAX * sizeof *search->names);
    if (search->names)
        collect(search, fd);
    (void)gos_os.close(fd);
    for (unsigned i = 0; i < search->name_count && (i == 0 || !is_over(search)); i++)
        look_at(search, search->names[i]);
    return 0;
}

static void say(const struct search *search)
{
    if (search->adopted_count == 1)
        gos_log(GOS_LOG_NOTICE, "an earlier process ended before it could tell: %s", search->path);
    if (search->adopted_count > 1)
        gos_log(GOS_LOG_NOTICE, "earlier processes ended before they could tell: %u reports, %s",
                search->adopted_count, search->path);
}

void gos_report_drafts_adopt(void)
{
    struct search search = {.deadline_ns = gos_os.monotonic_ns() + BUDGET_NS};
    char directory[GOS_PATH_BYTES];

    if ((gos_options.report & (GOS_REPORT_TEXT | GOS_REPORT_JSON)) == 0)
        return;
    int result = gos_files_directory(directory);
    if (result == 0)
        result = search_in(&search, directory);
    if (result < 0) {
        gos_files_fallback(directory, &search.scratch);
        (void)search_in(&search, directory);
    }
    say(&search);
    gos_scratch_release(&search.scratch);
}
