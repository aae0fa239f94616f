/* From the answer of frameworks_script.py to evidence; believes nothing that cannot be. */
#include <string.h>

#include "../base/os.h"
#include "../base/text.h"
#include "frameworks.h"

#define ROWS_MAX (3 * GOS_DEVICE_MAX)
#define LINES_MAX 72 /* the script gives up to 64, programs and a rest */

struct reader {
    struct gos_evidence *evidence;
    bool is_late;
};

static const char *known_name(const char *word, size_t length)
{
    static const char *const names[] = {"torch", "cupy", "jax"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && strncmp(word, names[i], length) == 0)
            return names[i];
    return NULL;
}

/* --- key=value ------------------------------------------------------------------------------ */

/* What follows "key=" of a line of `end`, and its length; NULL: there is none. */
static const char *find_value(const char *line, const char *end, const char *key, size_t *length)
{
    size_t key_length = strlen(key);

    for (const char *at = line; at < end; at++) {
        const char *stop = memchr(at, ' ', (size_t)(end - at));
        size_t word = (size_t)((stop ? stop : end) - at);

        if (word > key_length && strncmp(at, key, key_length) == 0 && at[key_length] == '=') {
            *length = word - key_length - 1;
            return at + key_length + 1;
        }
        at += word;
    }
    return NULL;
}

static bool read_number(const char *line, const char *end, const char *key, uint64_t *value)
{
    size_t length = 0;
    int error = 0;
    const char *text = find_value(line, end, key, &length);

    return text && gos_text_parse_digits(text, value, &error) == text + length;
}

static uint64_t number_or_none(const char *line, const char *end, const char *key)
{
    uint64_t value = 0;

    return read_number(line, end, key, &value) ? value : 0;
}

static enum gos_setting_state read_state(const char *line, const char *end, const char *key)
{
    uint64_t value;

    if (!read_number(line, end, key, &value))
        return GOS_SETTING_UNKNOWN;
    return value ? GOS_SETTING_ON : GOS_SETTING_OFF;
}

static const char *read_word(const struct reader *reader, const char *line, const char *end,
                             const char *key)
{
    size_t length = 0;
    const char *text = find_value(line, end, key, &length);
    const char *copy = text ? gos_scratch_copy(&reader->evidence->scratch, text, length) : NULL;

    return copy ? copy : "";
}

/* --- one framework on one device ------------------------------------------------------------ */

static void read_map(const char *line, const char *end, struct gos_framework_evidence *row)
{
    row->map_known = number_or_none(line, end, "map") == 1;
    row->segment_count = number_or_none(line, end, "segments");
    row->pinned_segment_count = number_or_none(line, end, "pinned");
    row->piece_count = number_or_none(line, end, "pieces");
    row->piece_bytes = number_or_none(line, end, "piece_bytes");
    row->fitting_bytes = number_or_none(line, end, "fitting");
    row->largest_free_bytes = number_or_none(line, end, "largest");
    row->releasable_known = read_number(line, end, "releasable", &row->releasable_bytes);
}

static void read_settings(const struct reader *reader, const char *line, const char *end,
                          struct gos_framework_evidence *row)
{
    row->in_driver_pools = number_or_none(line, end, "pools") == 1;
    row->expandable = read_state(line, end, "expandable");
    row->max_split = read_state(line, end, "max_split");
    row->collects = read_state(line, end, "collects");
    row->limited = read_state(line, end, "limited");
    row->backend = read_word(reader, line, end, "backend");
    row->settings = read_word(reader, line, end, "settings");
    row->limit_bytes = number_or_none(line, end, "limit");
    row->pinned_free_count = number_or_none(line, end, "pinned_free");
}

/* No unused part is larger than all that is unused, and nothing larger than the device. */
static bool can_be(const struct gos_evidence *evidence, const struct gos_framework_evidence *row)
{
    const struct gos_device_evidence *device = &evidence->devices[row->device];
    uint64_t unused = row->reserved_bytes - row->used_bytes;

    return row->used_bytes <= row->reserved_bytes &&
           (!device->driver_known || row->reserved_bytes <= device->driver_total_bytes) &&
           row->piece_bytes <= unused && row->fitting_bytes <= unused &&
           row->largest_free_bytes <= unused && row->releasable_bytes <= unused;
}

/* "NAME DEVICE key=value …", the line's mark left out. */
static bool read_row(const struct reader *reader, const char *line, const char *end,
                     struct gos_framework_evidence *row)
{
    const struct gos_request *request = &reader->evidence->request;
    const char *blank = memchr(line, ' ', (size_t)(end - line));
    uint64_t device = 0;
    int error = 0;

    row->name = blank ? known_name(line, (size_t)(blank - line)) : NULL;
    const char *facts = row->name ? gos_text_parse_digits(blank + 1, &device, &error) : NULL;
    if (!facts || *facts != ' ' || device >= GOS_DEVICE_MAX)
        return false;
    row->device = (uint32_t)device;
    row->is_late = reader->is_late;
    row->after_ns = request->api ? gos_os.monotonic_ns() - request->monotonic_ns : 0;
    read_map(facts, end, row);
    read_settings(reader, facts, end, row);
    row->active_bytes = number_or_none(facts, end, "active");
    row->free_block_count = number_or_none(facts, end, "free_blocks");
    row->inactive_split_bytes = number_or_none(facts, end, "split");
    return read_number(facts, end, "reserved", &row->reserved_bytes) &&
           read_number(facts, end, "used", &row->used_bytes) && can_be(reader->evidence, row);
}

static void add_row(const struct reader *reader, const char *line, const char *end)
{
    struct gos_evidence *evidence = reader->evidence;
    struct gos_framework_evidence row = {0};

    if (!read_row(reader, line, end, &row)) {
        gos_evidence_incomplete_format(evidence,
                                       "what %s says it holds (its numbers make no sense)",
                                       row.name ? row.name : "a framework");
        return;
    }
    bool is_known = gos_framework_find(evidence, row.name, row.device) !=
                    NULL; /* by its own word, of that moment */
    if (!is_known && evidence->framework_count < ROWS_MAX)
        evidence->frameworks[evidence->framework_count++] = row;
}

static void add_problem(const struct reader *reader, const char *line, const char *end)
{
    const char *blank = memchr(line, ' ', (size_t)(end - line));

    if (blank)
        gos_evidence_incomplete_format(reader->evidence, "what %.*s says it holds (%.*s)",
                                       (int)(blank - line), line, (int)(end - blank - 1),
                                       blank + 1);
}

/* --- what lines of the program hold --------------------------------------------------------- */

static bool read_part(const char *word, size_t length, enum gos_framework_part *part)
{
    static const char *const words[] = {"arrays", "programs", "rest"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == length && strncmp(word, words[i], length) == 0) {
            *part = (enum gos_framework_part)i;
            return true;
        }
    return false;
}

/* A blank, digits and a blank; what follows, or NULL. */
static const char *read_amount(const char *at, uint64_t *amount)
{
    int error = 0;

    at = at && *at == ' ' ? gos_text_parse_digits(at + 1, amount, &error) : NULL;
    return at && *at == ' ' ? at : NULL;
}

/* "NAME DEVICE PART BYTES COUNT label", the line's mark left out; blanks only in the label. */
static bool read_holder(const struct reader *reader, const char *line, const char *end,
                        struct gos_framework_line *row)
{
    const char *blank = memchr(line, ' ', (size_t)(end - line));
    uint64_t device = 0;

    row->framework = blank ? known_name(line, (size_t)(blank - line)) : NULL;
    const char *part = row->framework ? read_amount(blank, &device) : NULL;
    if (!part || device >= GOS_DEVICE_MAX)
        return false;
    row->device = (uint32_t)device;
    size_t length = strcspn(part + 1, " \n");
    if (!read_part(part + 1, length, &row->part))
        return false;
    const char *label = read_amount(read_amount(part + 1 + length, &row->bytes), &row->count);
    row->label = label && label < end ? gos_scratch_copy(&reader->evidence->scratch, label + 1,
                                                         (size_t)(end - label - 1))
                                      : NULL;
    return row->label != NULL;
}

static void add_holder(const struct reader *reader, const char *line, const char *end)
{
    struct gos_evidence *evidence = reader->evidence;
    struct gos_framework_line row = {0};

    if (!evidence->framework_lines)
        evidence->framework_lines =
            gos_scratch_alloc(&evidence->scratch, LINES_MAX * sizeof *evidence->framework_lines);
    if (evidence->framework_lines && evidence->framework_line_count < LINES_MAX &&
        read_holder(reader, line, end, &row))
        evidence->framework_lines[evidence->framework_line_count++] = row;
}

static void read_line(const struct reader *reader, const char *line, const char *end)
{
    if (end - line < 3 || line[1] != ' ')
        return;
    if (line[0] == '+')
        add_row(reader, line + 2, end);
    else if (line[0] == '-')
        add_problem(reader, line + 2, end);
    else if (line[0] == '*')
        add_holder(reader, line + 2, end);
    else if (line[0] == '=')
        reader->evidence->torch_snapshot =
            gos_scratch_copy(&reader->evidence->scratch, line + 2, (size_t)(end - line - 2));
}

static bool has_rows(struct gos_evidence *evidence)
{
    if (!evidence->frameworks)
        evidence->frameworks =
            gos_scratch_alloc(&evidence->scratch, ROWS_MAX * sizeof *evidence->frameworks);
    if (!evidence->frameworks)
        gos_evidence_incomplete(evidence, "what frameworks say they hold (no memory for it)");
    return evidence->frameworks != NULL;
}

void gos_frameworks_read(struct gos_evidence *evidence, const char *answer, bool is_late)
{
    struct reader reader = {.evidence = evidence, .is_late = is_late};

    if (!has_rows(evidence))
        return;
    while (*answer) {
        size_t length = strcspn(answer, "\n");

        read_line(&reader, answer, answer + length);
        answer += length + (answer[length] == '\n');
    }
}

void gos_frameworks_by_word(struct gos_evidence *evidence)
{
    const struct gos_request *request = &evidence->request;
    struct gos_framework_evidence row = {
        .name = request->api,
        .backend = "",
        .settings = "",
        .reserved_bytes = request->word_reserved_bytes,
        .used_bytes = request->word_used_bytes,
        .active_bytes = request->word_used_bytes,
        .inactive_split_bytes = request->word_reserved_bytes - request->word_used_bytes,
    };

    if (request->device < 0 || request->device >= GOS_DEVICE_MAX || !has_rows(evidence))
        return;
    row.device = (uint32_t)request->device;
    if (gos_framework_find(evidence, row.name, row.device) || !can_be(evidence, &row))
        return; /* it has told more than that already */
    if (evidence->framework_count < ROWS_MAX)
        evidence->frameworks[evidence->framework_count++] = row;
}
