#include "text.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define NS_PER_US 1000u
#define NS_PER_MS 1000000u
#define NS_PER_SECOND 1000000000u
#define SECONDS_PER_DAY 86400u

/* value / 2^shift in units of 1/scale, rounded half up, without overflow. */
static uint64_t scaled(uint64_t value, unsigned shift, uint64_t scale)
{
    uint64_t half = 1ull << (shift - 1);
    uint64_t rest = value & ((1ull << shift) - 1);

    return (value >> shift) * scale + ((rest * scale + half) >> shift);
}

static void put_decimal(struct gos_text *text, uint64_t value, uint64_t scale, int digits)
{
    gos_text_format(text, "%zu.%0*zu", (size_t)(value / scale), digits, (size_t)(value % scale));
}

static void put_mib(struct gos_text *text, uint64_t tenths)
{
    put_decimal(text, tenths, 10, 1);
    gos_text_put(text, " MiB");
}

static void put_kib(struct gos_text *text, uint64_t bytes)
{
    if (bytes % 1024 == 0)
        gos_text_format(text, "%zu", (size_t)(bytes / 1024));
    else
        put_decimal(text, scaled(bytes, 10, 10), 10, 1);
    gos_text_put(text, " KiB");
}

/* A unit is left for the next when rounding would show 1024 of it. */
void gos_text_bytes(struct gos_text *text, uint64_t bytes)
{
    uint64_t gib_hundredths = scaled(bytes, 30, 100);
    uint64_t mib_tenths = scaled(bytes, 20, 10);

    if (bytes < 1024) {
        gos_text_format(text, "%zu B", (size_t)bytes);
    } else if (scaled(bytes, 10, 10) < 10240) {
        put_kib(text, bytes);
    } else if (mib_tenths < 10240) {
        put_mib(text, mib_tenths);
    } else if (gib_hundredths < 102400) {
        put_decimal(text, gib_hundredths, 100, 2);
        gos_text_put(text, " GiB");
    } else {
        put_decimal(text, scaled(bytes, 40, 100), 100, 2);
        gos_text_put(text, " TiB");
    }
}

void gos_text_gib(struct gos_text *text, uint64_t bytes)
{
    put_decimal(text, scaled(bytes, 30, 10), 10, 1);
}

static uint64_t round_to(uint64_t value, uint64_t unit)
{
    return value / unit + (value % unit >= unit / 2 ? 1 : 0);
}

void gos_text_duration(struct gos_text *text, uint64_t ns)
{
    if (ns < NS_PER_US) {
        gos_text_format(text, "%zu ns", (size_t)ns);
    } else if (round_to(ns, NS_PER_US) < 1000) {
        gos_text_format(text, "%zu us", (size_t)round_to(ns, NS_PER_US));
    } else if (round_to(ns, NS_PER_MS) < 1000) {
        gos_text_format(text, "%zu ms", (size_t)round_to(ns, NS_PER_MS));
    } else {
        put_decimal(text, round_to(ns, NS_PER_SECOND / 10), 10, 1);
        gos_text_put(text, " s");
    }
}

struct date {
    unsigned year, month, day;
};

/*
 * Years are counted from March, so that the leap day is a year's last; days
 * from 1 March of the year 0.  146,097 days are 400 years.
 */
static struct date date_of(uint64_t days_since_1970)
{
    uint64_t days = days_since_1970 + 719468;
    unsigned of_era = (unsigned)(days % 146097);
    unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned month_from_march = (5 * of_year + 2) / 153;
    struct date date = {
        .year = (unsigned)(days / 146097) * 400 + year_of_era,
        .month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9,
        .day = of_year - (153 * month_from_march + 2) / 5 + 1,
    };

    date.year += date.month <= 2;
    return date;
}

void gos_text_time_of_day(struct gos_text *text, uint64_t wall_ns)
{
    unsigned of_day = (unsigned)(wall_ns / NS_PER_SECOND % SECONDS_PER_DAY);

    gos_text_format(text, "%02u:%02u:%02u", of_day / 3600, of_day / 60 % 60, of_day % 60);
}

void gos_text_time(struct gos_text *text, uint64_t wall_ns)
{
    uint64_t seconds = wall_ns / NS_PER_SECOND;
    struct date date = date_of(seconds / SECONDS_PER_DAY);

    gos_text_format(text, "%04u-%02u-%02u ", date.year, date.month, date.day);
    gos_text_time_of_day(text, wall_ns);
    gos_text_put(text, " UTC");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *gos_text_parse_digits(const char *string, uint64_t *value, int *error)
{
    *error = is_digit(*string) ? 0 : -EINVAL;
    for (*value = 0; is_digit(*string); string++) {
        if (__builtin_mul_overflow(*value, 10u, value) ||
            __builtin_add_overflow(*value, (unsigned)(*string - '0'), value))
            *error = -ERANGE;
    }
    return *error ? NULL : string;
}

static const char *skip_one_space(const char *string)
{
    return *string == ' ' ? string + 1 : string;
}

static int shift_of_unit(const char *unit)
{
    static const struct {
        char name[4];
        int shift;
    } units[] = {{"", 0},     {"b", 0},   {"k", 10},   {"kb", 10}, {"kib", 10},
                 {"m", 20},   {"mb", 20}, {"mib", 20}, {"g", 30},  {"gb", 30},
                 {"gib", 30}, {"t", 40},  {"tb", 40},  {"tib", 40}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (gos_text_is_word(unit, strlen(unit), units[i].name))
            return units[i].shift;
    }
    return -EINVAL;
}

int gos_text_parse_bytes(const char *string, uint64_t *bytes)
{
    uint64_t value;
    int error, shift;
    const char *rest = gos_text_parse_digits(string, &value, &error);

    if (!rest)
        return error;
    shift = shift_of_unit(*rest ? skip_one_space(rest) : rest);
    if (shift < 0 || (rest[0] == ' ' && rest[1] == '\0'))
        return -EINVAL;
    if (value > UINT64_MAX >> shift)
        return -ERANGE;
    *bytes = value << shift;
    return 0;
}

static uint64_t ns_of_unit(const char *unit)
{
    static const struct {
        char name[3];
        uint64_t ns;
    } units[] = {{"", NS_PER_SECOND},
                 {"ns", 1},
                 {"us", NS_PER_US},
                 {"ms", NS_PER_MS},
                 {"s", NS_PER_SECOND},
                 {"m", 60ull * NS_PER_SECOND},
                 {"h", 3600ull * NS_PER_SECOND}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (gos_text_is_word(unit, strlen(unit), units[i].name))
            return units[i].ns;
    }
    return 0;
}

/* In billionths; digits after the ninth cannot matter.  NULL when a point stands alone. */
static const char *parse_fraction(const char *string, uint64_t *billionths)
{
    uint64_t worth = NS_PER_SECOND;

    *billionths = 0;
    if (*string != '.')
        return string;
    if (!is_digit(string[1]))
        return NULL;
    for (string++; is_digit(*string); string++) {
        worth /= 10;
        *billionths += worth * (unsigned)(*string - '0');
    }
    return string;
}

/* Every unit divides a second or is a multiple of one, so nothing overflows or is lost. */
static uint64_t part_of(uint64_t unit_ns, uint64_t billionths)
{
    if (unit_ns < NS_PER_SECOND)
        return billionths / (NS_PER_SECOND / unit_ns);
    return unit_ns / NS_PER_SECOND * billionths;
}

int gos_text_parse_duration(const char *string, uint64_t *ns)
{
    uint64_t whole, billionths, unit_ns, whole_ns, part_ns;
    int error;
    const char *rest = gos_text_parse_digits(string, &whole, &error);

    if (!rest)
        return error;
    rest = parse_fraction(rest, &billionths);
    unit_ns = rest ? ns_of_unit(rest) : 0;
    if (unit_ns == 0)
        return -EINVAL;
    part_ns = part_of(unit_ns, billionths);
    if (__builtin_mul_overflow(whole, unit_ns, &whole_ns) ||
        __builtin_add_overflow(whole_ns, part_ns, ns))
        return -ERANGE;
    return 0;
}
