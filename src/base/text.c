#include "text.h"

#include <string.h>

#define NUMBER_CHARS 20 /* digits of UINT64_MAX */

struct gos_text gos_text_on(char *buffer, size_t size)
{
    if (size > 0)
        buffer[0] = '\0';
    return (struct gos_text){.data = buffer, .size = size};
}

static size_t room(const struct gos_text *text)
{
    return text->size > text->length ? text->size - text->length - 1 : 0;
}

void gos_text_put_n(struct gos_text *text, const char *string, size_t length)
{
    size_t fits = room(text);

    if (length > fits) {
        text->truncated = true;
        length = fits;
    }
    if (length == 0)
        return;
    memcpy(text->data + text->length, string, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void gos_text_put(struct gos_text *text, const char *string)
{
    gos_text_put_n(text, string, strlen(string));
}

void gos_text_char(struct gos_text *text, char c)
{
    gos_text_put_n(text, &c, 1);
}

static void repeat(struct gos_text *text, char c, size_t count)
{
    size_t fits = room(text);

    if (count > fits) {
        text->truncated = true;
        count = fits;
    }
    if (count == 0)
        return;
    memset(text->data + text->length, c, count);
    text->length += count;
    text->data[text->length] = '\0';
}

/* One conversion of a format string. */
struct conversion {
    bool left;
    bool zeros;
    size_t width;
    size_t precision; /* of %s; SIZE_MAX: none given */
    unsigned bytes;   /* size of the integer argument */
    char letter;
};

static void put_padded(struct gos_text *text, const struct conversion *how, const char *string,
                       size_t length)
{
    size_t padding = how->width > length ? how->width - length : 0;

    if (!how->left)
        repeat(text, ' ', padding);
    gos_text_put_n(text, string, length);
    if (how->left)
        repeat(text, ' ', padding);
}

static void put_string(struct gos_text *text, const struct conversion *how, const char *string)
{
    string = string ? string : "(null)";
    put_padded(text, how, string, strnlen(string, how->precision));
}

/* Writes the digits before `end`; returns their first. */
static char *digits_before(char *end, uint64_t value, unsigned radix)
{
    do {
        *--end = "0123456789abcdef"[value % radix];
        value /= radix;
    } while (value);
    return end;
}

static void put_number(struct gos_text *text, const struct conversion *how, const char *sign,
                       uint64_t value, unsigned radix)
{
    char buffer[2 + NUMBER_CHARS], *end = buffer + sizeof(buffer);
    char *first = digits_before(end, value, radix);
    size_t sign_length = strlen(sign);

    /* Zeros go between sign and digits, spaces before the sign. */
    if (how->zeros && !how->left) {
        size_t length = sign_length + (size_t)(end - first);

        gos_text_put_n(text, sign, sign_length);
        repeat(text, '0', how->width > length ? how->width - length : 0);
        gos_text_put_n(text, first, (size_t)(end - first));
        return;
    }
    first -= sign_length;
    memcpy(first, sign, sign_length);
    put_padded(text, how, first, (size_t)(end - first));
}

/*
 * va_list cannot portably be passed on by address, so the arguments travel in
 * a struct of their own.
 */
struct arguments {
    va_list list;
};

static uint64_t take_unsigned(struct arguments *args, unsigned bytes)
{
    if (bytes == sizeof(uint64_t))
        return va_arg(args->list, uint64_t);
    /* char and short arrive as int. */
    return va_arg(args->list, unsigned) & (UINT32_MAX >> (8 * (sizeof(uint32_t) - bytes)));
}

static int64_t take_signed(struct arguments *args, unsigned bytes)
{
    unsigned unused_bits = 8 * (unsigned)(sizeof(uint64_t) - bytes);

    return (int64_t)(take_unsigned(args, bytes) << unused_bits) >> unused_bits;
}

static const char *parse_width(const char *format, struct conversion *how, struct arguments *args)
{
    if (*format == '*') {
        int width = va_arg(args->list, int);

        how->left = how->left || width < 0;
        how->width = (size_t)(width < 0 ? -(int64_t)width : width);
        return format + 1;
    }
    for (; *format >= '0' && *format <= '9'; format++)
        how->width = how->width * 10 + (size_t)(*format - '0');
    return format;
}

static const char *parse_precision(const char *format, struct conversion *how,
                                   struct arguments *args)
{
    if (*format != '.')
        return format;
    format++;
    if (*format == '*') {
        int precision = va_arg(args->list, int);

        how->precision = precision < 0 ? SIZE_MAX : (size_t)precision;
        return format + 1;
    }
    for (how->precision = 0; *format >= '0' && *format <= '9'; format++)
        how->precision = how->precision * 10 + (size_t)(*format - '0');
    return format;
}

static const char *parse_length(const char *format, struct conversion *how)
{
    for (;; format++) {
        if (*format == 'h')
            how->bytes /= 2;
        else if (*format == 'l' || *format == 'z' || *format == 'j')
            how->bytes = sizeof(uint64_t);
        else
            return format;
    }
}

static const char *parse(const char *format, struct conversion *how, struct arguments *args)
{
    *how = (struct conversion){.precision = SIZE_MAX, .bytes = sizeof(int)};
    for (; *format == '-' || *format == '0'; format++) {
        how->left = how->left || *format == '-';
        how->zeros = how->zeros || *format == '0';
    }
    format = parse_width(format, how, args);
    format = parse_precision(format, how, args);
    format = parse_length(format, how);
    how->letter = *format;
    return *format ? format + 1 : format;
}

static void put_signed(struct gos_text *text, const struct conversion *how, int64_t value)
{
    /* Negating as unsigned is right for INT64_MIN, too. */
    if (value < 0)
        put_number(text, how, "-", -(uint64_t)value, 10);
    else
        put_number(text, how, "", (uint64_t)value, 10);
}

static void put_letter(struct gos_text *text, const struct conversion *how, char c)
{
    put_padded(text, how, &c, 1);
}

static void convert(struct gos_text *text, const struct conversion *how, struct arguments *args)
{
    switch (how->letter) {
    case 's':
        put_string(text, how, va_arg(args->list, const char *));
        break;
    case 'c':
        put_letter(text, how, (char)va_arg(args->list, int));
        break;
    case 'd':
    case 'i':
        put_signed(text, how, take_signed(args, how->bytes));
        break;
    case 'u':
        put_number(text, how, "", take_unsigned(args, how->bytes), 10);
        break;
    case 'x':
        put_number(text, how, "", take_unsigned(args, how->bytes), 16);
        break;
    case 'p':
        put_number(text, how, "0x", (uintptr_t)va_arg(args->list, void *), 16);
        break;
    default:
        /* "%%", and what is not understood, shown as itself. */
        gos_text_put_n(text, &how->letter, how->letter != '\0');
        break;
    }
}

void gos_text_vformat(struct gos_text *text, const char *format, va_list list)
{
    struct arguments args;
    struct conversion how;

    va_copy(args.list, list);
    while (*format) {
        size_t plain = (size_t)(strchrnul(format, '%') - format);

        gos_text_put_n(text, format, plain);
        format += plain;
        if (*format != '%')
            break;
        format = parse(format + 1, &how, &args);
        convert(text, &how, &args);
    }
    va_end(args.list);
}

void gos_text_format(struct gos_text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    gos_text_vformat(text, format, args);
    va_end(args);
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool gos_text_is_word(const char *string, size_t length, const char *word)
{
    for (size_t i = 0; i < length; i++) {
        if (word[i] == '\0' || lower(string[i]) != lower(word[i]))
            return false;
    }
    return word[length] == '\0';
}

const char *gos_text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}
