#include "refusal_words.h"

#include <stddef.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *first_digit(const char *at)
{
    while (*at && !is_digit(*at))
        at++;
    return *at ? at : NULL;
}

/* "12884901888", "1,024"; what follows. */
static const char *read_whole(const char *at, uint64_t *value)
{
    *value = 0;
    for (; is_digit(*at) || (*at == ',' && is_digit(at[1])); at++)
        if (*at != ',' && (__builtin_mul_overflow(*value, 10u, value) ||
                           __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value)))
            *value = UINT64_MAX;
    return at;
}

/* Thousandths of what stands behind the point. */
static const char *read_fraction(const char *at, uint64_t *thousandths)
{
    uint64_t weight = 100;

    *thousandths = 0;
    if (*at != '.' || !is_digit(at[1]))
        return at;
    for (at++; is_digit(*at); at++, weight /= 10)
        *thousandths += (uint64_t)(*at - '0') * weight;
    return at;
}

/* How far a unit's name shifts a number; false: it is no amount of memory. */
static bool read_unit(const char *at, unsigned *shift)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"bytes", 0}, {"B", 0},  {"KiB", 10}, {"MiB", 20}, {"GiB", 30},
                 {"TiB", 40},  {"K", 10}, {"M", 20},   {"G", 30},   {"T", 40}};

    at += *at == ' ';
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (begins(at, units[i].name)) {
            *shift = units[i].shift;
            return true;
        }
    return false;
}

/* "1,024 bytes", "12.00GiB"; and where it is rounded, what may stand behind it: "(12884901888B)" */
static bool read_amount(const char *at, uint64_t *bytes)
{
    uint64_t value, thousandths, exact;
    unsigned shift;
    const char *after = read_fraction(read_whole(at, &value), &thousandths);

    if (!read_unit(after, &shift) || value > UINT64_MAX >> shift)
        return false;
    *bytes = (value << shift) + (thousandths << shift) / 1000;
    const char *bracket = strchr(after, '(');
    if (shift > 0 && bracket && bracket - after < 6 && is_digit(bracket[1])) {
        after = read_whole(bracket + 1, &exact);
        if (begins(after, "B)") || begins(after, " bytes)"))
            *bytes = exact;
    }
    return true;
}

/* Behind "allocat…", before the sentence's end. */
static bool read_asked(const char *message, uint64_t *bytes)
{
    const char *word = strstr(message, "llocat");
    const char *digit = word ? first_digit(word) : NULL;

    return digit && (size_t)(digit - word) < strcspn(word, "\n") && read_amount(digit, bytes);
}

static bool amount_behind(const char *message, const char *words, uint64_t *bytes)
{
    const char *at = strstr(message, words);

    return at && read_amount(at + strlen(words), bytes);
}

/* Other resources are exhausted, too: a kernel's shared memory, say. */
static bool is_of_jax(const char *message)
{
    return strstr(message, "RESOURCE_EXHAUSTED") &&
           (strstr(message, "ut of memory") || strstr(message, "o allocate"));
}

/* "… allocating 1,024 bytes (allocated so far: 512 bytes, limit set to: 1,024 bytes)." */
static bool is_of_cupy(const char *message)
{
    uint64_t asked, so_far, limit;

    return read_asked(message, &asked) && amount_behind(message, "so far: ", &so_far) &&
           amount_behind(message, "limit set to: ", &limit) &&
           (so_far > limit || asked > limit - so_far);
}

bool gos_refusal_words(const char *type, const char *module, const char *message,
                       struct gos_refusal_words *words)
{
    bool jax = strcmp(type, "XlaRuntimeError") == 0 || strcmp(type, "JaxRuntimeError") == 0;
    bool cupy = strcmp(type, "OutOfMemoryError") == 0 && begins(module, "cupy");

    words->framework = NULL;
    if (jax && begins(module, "jax") && is_of_jax(message))
        words->framework = "jax";
    else if (cupy && is_of_cupy(message))
        words->framework = "cupy";
    words->asked_known = words->framework && read_asked(message, &words->asked_bytes);
    return words->framework != NULL;
}
