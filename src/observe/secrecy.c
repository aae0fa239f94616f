#include "secrecy.h"

#include <string.h>
#include <strings.h>

/* Shortest run of letters and digits that is taken for a token; a uuid's longest part is 12. */
#define MIXED_RUN 24
#define HEX_RUN 32

static const char *const secret_words[] = {"key",        "apikey",    "token", "secret",
                                           "password",   "passwd",    "auth",  "credentials",
                                           "credential", "passphrase"};

static const char *const token_prefixes[] = {"hf_",   "ghp_",   "gho_", "github_pat_", "glpat-",
                                             "sk-",   "nvapi-", "AKIA", "ASIA",        "eyJ",
                                             "xoxb-", "xoxp-",  "ya29."};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool gos_secrecy_name(const char *name, size_t length)
{
    size_t start = length;

    while (start > 0 && is_letter(name[start - 1]))
        start--;
    for (size_t i = 0; i < LENGTH(secret_words); i++)
        if (strlen(secret_words[i]) == length - start &&
            strncasecmp(name + start, secret_words[i], length - start) == 0)
            return true;
    return false;
}

static bool starts_like_token(const char *value, size_t length)
{
    for (size_t i = 0; i < LENGTH(token_prefixes); i++) {
        size_t prefix = strlen(token_prefixes[i]);

        /* A prefix alone is a word; with a dozen characters behind it, it is a token. */
        if (length >= prefix + 12 && memcmp(value, token_prefixes[i], prefix) == 0)
            return true;
    }
    return false;
}

struct run {
    size_t length;
    bool upper, lower, digit, only_hex;
};

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void extend(struct run *run, char c)
{
    run->only_hex = (run->length == 0 || run->only_hex) && is_hex(c);
    run->length++;
    run->digit = run->digit || is_digit(c);
    run->upper = run->upper || (c >= 'A' && c <= 'Z');
    run->lower = run->lower || (c >= 'a' && c <= 'z');
}

static bool is_token(const struct run *run)
{
    return (run->length >= MIXED_RUN && run->upper && run->lower && run->digit) ||
           (run->length >= HEX_RUN && run->only_hex);
}

static bool has_long_run(const char *value, size_t length)
{
    struct run run = {0};

    for (size_t i = 0; i < length; i++) {
        if (is_letter(value[i]) || is_digit(value[i])) {
            extend(&run, value[i]);
            continue;
        }
        if (is_token(&run))
            return true;
        run = (struct run){0};
    }
    return is_token(&run);
}

/* scheme://user:password@host */
static bool has_password(const char *value, size_t length)
{
    const char *end = value + length;
    const char *at = memmem(value, length, "://", 3);

    for (at = at != NULL ? at + 3 : end; at < end && *at != '/' && *at != ' '; at++)
        if (*at == '@')
            return true;
    return false;
}

/* A token may follow a separator: "--token=hf_…", "a,sk-…". */
static bool has_token(const char *value, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((i == 0 || strchr("=:, \"'", value[i - 1]) != NULL) &&
            starts_like_token(value + i, length - i))
            return true;
    return false;
}

bool gos_secrecy_value(const char *value, size_t length)
{
    return has_token(value, length) || has_password(value, length) || has_long_run(value, length);
}
