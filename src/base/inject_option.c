#include "inject_option.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "memory.h"
#include "text.h"

#define PPB 1000000000u
#define WORD_BYTES 256

static int parse_number(const char *word, uint64_t *number)
{
    int error;
    const char *rest = gos_text_parse_digits(word, number, &error);

    if (!rest)
        return error;
    return *rest == '\0' ? 0 : -EINVAL;
}

static int set_rule(struct gos_inject_option *inject, enum gos_inject_rule rule)
{
    if (inject->rule != GOS_INJECT_NONE)
        return -EINVAL; /* two rules cannot both be meant */
    inject->rule = rule;
    return 0;
}

static int parse_rule_number(struct gos_inject_option *inject, enum gos_inject_rule rule,
                             const char *word)
{
    int error = set_rule(inject, rule);

    if (error == 0)
        error = parse_number(word, &inject->number);
    return error == 0 && inject->number == 0 ? -ERANGE : error;
}

static int parse_nth(struct gos_inject_option *inject, const char *word)
{
    return parse_rule_number(inject, GOS_INJECT_NTH, word);
}

static int parse_every(struct gos_inject_option *inject, const char *word)
{
    return parse_rule_number(inject, GOS_INJECT_EVERY, word);
}

/* Nine decimals; what follows them must be digits all the same. */
static int parse_decimals(const char *digits, uint64_t *ppb)
{
    uint32_t unit = PPB / 10;

    if (*digits == '\0')
        return -EINVAL;
    for (; *digits >= '0' && *digits <= '9'; digits++, unit /= 10)
        *ppb += (uint32_t)(*digits - '0') * unit;
    return *digits == '\0' ? 0 : -EINVAL;
}

static int parse_share(struct gos_inject_option *inject, const char *word)
{
    uint64_t whole = 0;
    uint64_t ppb;
    int error = set_rule(inject, GOS_INJECT_SHARE);
    const char *rest = *word == '.' ? word : NULL;

    if (error == 0 && !rest && !(rest = gos_text_parse_digits(word, &whole, &error)))
        return error;
    if (error != 0 || whole > 1)
        return error ? error : -ERANGE;
    ppb = whole * PPB;
    if (*rest == '.')
        error = parse_decimals(rest + 1, &ppb);
    else if (*rest != '\0')
        error = -EINVAL;
    if (error == 0 && (ppb == 0 || ppb > PPB))
        error = -ERANGE;
    inject->share_ppb = (uint32_t)ppb;
    return error;
}

static int parse_seed(struct gos_inject_option *inject, const char *word)
{
    return parse_number(word, &inject->seed);
}

static int parse_kind(struct gos_inject_option *inject, const char *word)
{
    static const char *const words[] = {
#define WORD(name, text, usual) text,
        GOS_INJECT_KINDS(WORD)
#undef WORD
    };

    for (uint32_t i = 0; i < GOS_INJECT_KIND_COUNT; i++) {
        if (!gos_text_is_word(word, strlen(word), words[i]))
            continue;
        inject->kinds |= 1u << i;
        return 0;
    }
    return -EINVAL;
}

static int parse_min(struct gos_inject_option *inject, const char *word)
{
    return gos_text_parse_bytes(word, &inject->min_bytes);
}

static int parse_max(struct gos_inject_option *inject, const char *word)
{
    return gos_text_parse_bytes(word, &inject->max_bytes);
}

static int parse_site(struct gos_inject_option *inject, const char *word)
{
    if (*word == '\0')
        return -EINVAL;
    inject->site = gos_arena_intern(word, strlen(word));
    return inject->site ? 0 : -ENOMEM;
}

static int parse_recover(struct gos_inject_option *inject, const char *word)
{
    uint64_t number;
    int error = parse_number(word, &number);

    if (error != 0 || number > 1)
        return -EINVAL;
    inject->recover = number == 1;
    return 0;
}

static const struct {
    const char *key;
    int (*parse)(struct gos_inject_option *, const char *);
} parts[] = {
    {"nth", parse_nth},   {"every", parse_every}, {"share", parse_share},
    {"seed", parse_seed}, {"kind", parse_kind},   {"min", parse_min},
    {"max", parse_max},   {"site", parse_site},   {"recover", parse_recover},
};

static int parse_part(const char *part, size_t length, struct gos_inject_option *inject)
{
    char word[WORD_BYTES];
    size_t key = strcspn(part, "=,");

    if (part[key] != '=' || length - key >= sizeof(word))
        return -EINVAL;
    memcpy(word, part + key + 1, length - key - 1);
    word[length - key - 1] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (gos_text_is_word(part, key, parts[i].key))
            return parts[i].parse(inject, word);
    }
    return -EINVAL;
}

static int parse_parts(const char *value, struct gos_inject_option *inject)
{
    for (;;) {
        size_t length;
        int error;

        value += strspn(value, " ");
        length = strcspn(value, ",");
        error = parse_part(value, length, inject);
        if (error != 0 || value[length] == '\0')
            return error;
        value += length + 1;
    }
}

static uint32_t usual_kinds(void)
{
#define USUAL(name, word, usual) | ((usual) ? 1u << GOS_INJECT_##name : 0)
    return 0 GOS_INJECT_KINDS(USUAL);
#undef USUAL
}

static int check(struct gos_inject_option *inject)
{
    if (inject->rule == GOS_INJECT_NONE || inject->min_bytes > inject->max_bytes)
        return -EINVAL;
    if (inject->kinds == 0)
        inject->kinds = usual_kinds();
    return 0;
}

static bool is_none(const char *value)
{
    size_t length = strlen(value);

    return length == 0 || gos_text_is_word(value, length, "off") ||
           gos_text_is_word(value, length, "none");
}

int gos_inject_option_parse(const char *value, struct gos_inject_option *inject)
{
    struct gos_inject_option parsed = {.max_bytes = UINT64_MAX};
    int error = 0;

    if (!is_none(value)) {
        error = parse_parts(value, &parsed);
        error = error ? error : check(&parsed);
    }
    if (error == 0)
        *inject = parsed;
    return error;
}

/* The finalizer of splitmix64: neighbouring numbers give unrelated ones. */
static uint64_t scatter(uint64_t number)
{
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

bool gos_inject_option_hits(const struct gos_inject_option *inject, uint64_t number)
{
    switch (inject->rule) {
    case GOS_INJECT_NTH:
        return number == inject->number;
    case GOS_INJECT_EVERY:
        return number % inject->number == 0;
    case GOS_INJECT_SHARE:
        return (scatter(scatter(inject->seed) + number) >> 32) * PPB >> 32 < inject->share_ppb;
    case GOS_INJECT_NONE:
        break;
    }
    return false;
}
