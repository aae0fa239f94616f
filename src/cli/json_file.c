#include "json_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define STEP_BYTES (1u << 20)
#define DIGITS_MAX 18 /* every number of so many digits is below 2^63 */

struct blob {
    char *data;
    size_t length;
    size_t size;
};

static bool blob_put(struct blob *blob, const char *data, size_t length)
{
    if (blob->length + length + 1 > blob->size) {
        size_t size = (blob->length + length) * 2 + STEP_BYTES;
        char *grown = realloc(blob->data, size);
        if (!grown)
            return false;
        blob->data = grown;
        blob->size = size;
    }
    memcpy(blob->data + blob->length, data, length);
    blob->length += length;
    blob->data[blob->length] = '\0';
    return true;
}

static bool blob_fill(struct blob *blob, FILE *stream)
{
    char buffer[65536];
    size_t length;
    while ((length = fread(buffer, 1, sizeof buffer, stream)) > 0) {
        if (!blob_put(blob, buffer, length))
            return false;
    }
    return !ferror(stream);
}

/* --- large integers --- */

static size_t string_length(const char *s, const char *end)
{
    const char *from = s++;
    while (s < end && *s != '"')
        s += *s == '\\' && s + 1 < end ? 2 : 1;
    return (size_t)((s < end ? s + 1 : end) - from);
}

static size_t number_length(const char *s, const char *end)
{
    const char *from = s;
    while (s < end && (isalnum((unsigned char)*s) || strchr("+-.", *s)))
        s++;
    return (size_t)(s - from);
}

static bool is_large_integer(const char *s, size_t length)
{
    return length > DIGITS_MAX && length <= 20 && strspn(s, "0123456789") == length;
}

static bool put_number(struct blob *out, const char *s, size_t length)
{
    static const char quote[] = "\"\\u0001";
    if (!is_large_integer(s, length))
        return blob_put(out, s, length);
    return blob_put(out, quote, sizeof quote - 1) && blob_put(out, s, length) &&
           blob_put(out, "\"", 1);
}

static bool quote_large_integers(const struct blob *in, struct blob *out)
{
    const char *end = in->data + in->length;
    bool done = true;
    for (const char *s = in->data; s < end && done;) {
        size_t length = 1;
        if (*s == '"')
            length = string_length(s, end);
        else if (isdigit((unsigned char)*s) || *s == '-')
            length = number_length(s, end);
        done = *s == '"' ? blob_put(out, s, length) : put_number(out, s, length);
        s += length;
    }
    return done;
}

/* --- reading --- */

static void complain_of_content(const char *path, const struct blob *blob,
                                const json_error_t *error)
{
    static const char title[] = "gpuoomshim ";
    if (strncmp(blob->data, title, sizeof title - 1) == 0)
        gos_command_complain("%s is the text of a report; give the .json beside it", path);
    else
        gos_command_complain("%s is damaged: line %d: %s", path, error->line, error->text);
}

static json_t *parse(const char *path, const struct blob *blob)
{
    struct blob quoted = {0};
    json_error_t error;
    json_t *root = NULL;
    if (!quote_large_integers(blob, &quoted) || !quoted.data) {
        gos_command_complain("%s is empty or too large", path);
    } else {
        root = json_loadb(quoted.data, quoted.length, 0, &error);
        if (!root)
            complain_of_content(path, blob, &error);
    }
    free(quoted.data);
    return root;
}

json_t *gos_json_parse(const char *path, const char *data, size_t bytes)
{
    struct blob blob = {0};
    json_t *root = NULL;
    if (blob_put(&blob, data, bytes))
        root = parse(path, &blob);
    else
        gos_command_complain("%s is too large", path);
    free(blob.data);
    return root;
}

json_t *gos_json_read(const char *path)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *stream = is_stdin ? stdin : fopen(path, "rb");
    struct blob blob = {0};
    json_t *root = NULL;
    if (!stream || !blob_fill(&blob, stream))
        gos_command_complain("cannot read %s: %s", path, strerror(errno));
    else
        root = parse(path, &blob);
    free(blob.data);
    if (stream && !is_stdin)
        fclose(stream);
    return root;
}

/* --- printing --- */

/* A string of the host may begin with the mark, too; it does not go on with digits alone. */
static void print_unmarked(const char *text)
{
    static const char mark[] = "\"\\u0001";
    const char *found;
    while ((found = strstr(text, mark)) != NULL) {
        const char *digits = found + sizeof mark - 1;
        size_t count = strspn(digits, "0123456789");
        bool marked = count > DIGITS_MAX && digits[count] == '"';
        fwrite(text, 1, (size_t)((marked ? found : digits) - text), stdout);
        if (marked)
            fwrite(digits, 1, count, stdout);
        text = digits + (marked ? count + 1 : 0);
    }
    puts(text);
}

int gos_json_print(const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);
    if (!text)
        return -1;
    print_unmarked(text);
    free(text);
    return 0;
}
