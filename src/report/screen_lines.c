#include "screen_lines.h"

#include <string.h>

#include "utf8.h"

static struct gos_screen_line *new_line(struct gos_screen *screen, uint8_t importance)
{
    if (screen->count == GOS_SCREEN_ROOM)
        return NULL;
    struct gos_screen_line *line = &screen->lines[screen->count++];
    memset(line, 0, sizeof *line);
    line->importance = importance;
    return line;
}

void gos_screen_gap(struct gos_screen *screen, uint8_t importance)
{
    (void)new_line(screen, importance);
}

/* One printable character, or false when the line has no room for it. */
static bool line_put(struct gos_screen_line *line, const char *character)
{
    size_t bytes = strlen(character);
    if (line->columns >= GOS_SCREEN_COLUMNS || line->length + bytes >= sizeof line->data)
        return false;
    memcpy(line->data + line->length, character, bytes + 1);
    line->length = (uint8_t)(line->length + bytes);
    line->columns++;
    return true;
}

static void line_pad(struct gos_screen_line *line, unsigned columns)
{
    while (line->columns < columns && line_put(line, " "))
        continue;
}

/* Puts up to `bytes` of s; returns what was consumed. */
static size_t line_put_word(struct gos_screen_line *line, const char *s, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        char printable[5];
        size_t consumed = gos_utf8_printable(s + done, printable);
        if (!line_put(line, printable))
            break;
        done += consumed;
    }
    return done;
}

void gos_screen_line(struct gos_screen *screen, uint8_t importance, const char *words)
{
    struct gos_screen_line *line = new_line(screen, importance);
    if (line)
        (void)line_put_word(line, words, strlen(words));
}

/*
 * How many bytes of s go on a line of so many columns: whole words, or, where
 * one word alone is too long (a path), as much of it as fits; on the last line
 * also of a word that is long itself.
 */
static size_t fit(const char *s, size_t columns, size_t bytes_max, bool is_last)
{
    size_t bytes = 0;
    size_t last_space = 0;
    for (size_t column = 0; s[bytes]; column++) {
        if (s[bytes] == ' ')
            last_space = bytes;
        if (column == columns || bytes + 4 > bytes_max) {
            bool splits = is_last && strcspn(s + last_space + 1, " ") > columns / 4;
            return last_space && !splits ? last_space : bytes;
        }
        size_t length = gos_utf8_length(s + bytes);
        bytes += length ? length : 1;
    }
    return bytes;
}

/* A line that is as full as can be loses its end to the mark. */
static void mark_cut(struct gos_screen_line *line)
{
    while (line->columns > GOS_SCREEN_COLUMNS - 3 || (size_t)line->length + 4 > sizeof line->data) {
        do {
            line->length--;
        } while (((unsigned char)line->data[line->length] & 0xc0) == 0x80);
        line->data[line->length] = '\0';
        line->columns--;
    }
    (void)line_put_word(line, "...", 3);
}

static const char *skip_spaces(const char *s)
{
    return s + strspn(s, " ");
}

void gos_screen_add(struct gos_screen *screen, uint8_t importance, const char *label,
                    const char *words, unsigned max_lines)
{
    struct gos_screen_line *line = NULL;
    for (unsigned i = 0; *words && i < max_lines; i++) {
        uint8_t less = (uint8_t)(i < importance ? importance - i : 1);
        line = new_line(screen, less);
        if (!line)
            return;
        line->continues = i > 0;
        (void)line_put_word(line, i == 0 ? label : "", i == 0 ? strlen(label) : 0);
        line_pad(line, GOS_SCREEN_LABEL);
        size_t part = fit(words, GOS_SCREEN_COLUMNS - GOS_SCREEN_LABEL,
                          sizeof line->data - GOS_SCREEN_LABEL - 1, i + 1 == max_lines);
        size_t done = line_put_word(line, words, part);
        words = skip_spaces(words + (done ? done : strlen(words)));
    }
    if (line && *words)
        mark_cut(line);
}

static unsigned least_important(const struct gos_screen *screen)
{
    unsigned least = 0;
    for (unsigned i = 1; i < screen->count; i++) {
        if (screen->lines[i].importance <= screen->lines[least].importance)
            least = i;
    }
    return least;
}

static void drop(struct gos_screen *screen, unsigned index)
{
    if (screen->lines[index].continues && index > 0)
        mark_cut(&screen->lines[index - 1]);
    screen->count--;
    memmove(&screen->lines[index], &screen->lines[index + 1],
            (screen->count - index) * sizeof screen->lines[0]);
}

void gos_screen_print(struct gos_screen *screen, struct gos_text *text)
{
    while (screen->count > GOS_SCREEN_LINES)
        drop(screen, least_important(screen));
    for (unsigned i = 0; i < screen->count; i++) {
        gos_text_put_n(text, screen->lines[i].data, screen->lines[i].length);
        gos_text_char(text, '\n');
    }
}
