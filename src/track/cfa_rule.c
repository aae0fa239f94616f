#include "cfa_rule.h"

#include <stddef.h>
#include <string.h>

/* Encodings of addresses: the low four bits say how wide. */
enum { WIDTH = 0x0f, WIDTH_OF_ADDRESS = 0x00, WIDTH_2 = 0x02, WIDTH_4 = 0x03, WIDTH_8 = 0x04 };
enum { SIGNED_WIDTH = 0x08, ALIGNED = 0x50 };

/* Instructions with their operand in the low six bits; then those that fill a byte. */
enum { ADVANCE = 1, OFFSET = 2, RESTORE = 3 };
enum {
    NOP = 0x00,
    ADVANCE_1 = 0x02,
    ADVANCE_2 = 0x03,
    ADVANCE_4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    IN_REGISTER = 0x09,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DEF_CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SIGNED = 0x11,
    DEF_CFA_SIGNED = 0x12,
    DEF_CFA_OFFSET_SIGNED = 0x13,
    ARGUMENTS_SIZE = 0x2e,
};

/* Of expressions: the value of a register plus an offset; the word at an address. */
enum { REGISTER_PLUS = 0x70, REGISTER_PLUS_LAST = 0x8f, WORD_AT = 0x06 };

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
};

struct unit {
    struct reader instructions;
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_column;
    uint8_t address_encoding;
    bool has_augmentation;
};

/* What instructions change, and what they put aside. */
struct state {
    bool is_known;
    uint32_t reg;
    int64_t offset;
    bool is_in_frame;
};

#define STATES_ASIDE 8

struct machine {
    const struct unit *unit;
    struct state now;
    struct state aside[STATES_ASIDE];
    uint32_t aside_count;
    uintptr_t location;
    uintptr_t limit; /* rules of later locations do not hold */
    struct gos_cfa_rule *rule;
};

/* --- numbers --------------------------------------------------------------------------------- */

static uint64_t take(struct reader *reader, size_t bytes)
{
    uint64_t value = 0;
    if (reader->is_bad || (size_t)(reader->end - reader->at) < bytes) {
        reader->is_bad = true;
        return 0;
    }
    memcpy(&value, reader->at, bytes); /* little-endian machines only, as all of ours */
    reader->at += bytes;
    return value;
}

static uint64_t take_uleb(struct reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = take(reader, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    reader->is_bad = true;
    return 0;
}

static int64_t take_sleb(struct reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        uint64_t byte = take(reader, 1);
        value |= (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return (int64_t)(byte & 0x40 ? value | ~UINT64_C(0) << (shift + 7) : value);
    }
    reader->is_bad = true;
    return 0;
}

static void skip_encoded(struct reader *reader, uint8_t encoding)
{
    static const uint8_t widths[8] = {
        [WIDTH_OF_ADDRESS] = 8, [WIDTH_2] = 2, [WIDTH_4] = 4, [WIDTH_8] = 8};
    uint8_t width = widths[encoding & WIDTH & ~SIGNED_WIDTH];
    if (!width || encoding == ALIGNED)
        reader->is_bad = true;
    take(reader, width);
}

/* --- descriptions ---------------------------------------------------------------------------- */

/* A length, then that many bytes. */
static struct reader read_entry(const uint8_t *entry)
{
    uint32_t bytes;
    memcpy(&bytes, entry, sizeof bytes);
    bool is_wide = bytes == UINT32_MAX;
    return (struct reader){entry + sizeof bytes, entry + sizeof bytes + (is_wide ? 0 : bytes),
                           is_wide};
}

/* "zPLR": what the bytes behind the length mean, letter by letter. */
static void read_augmentation(struct reader *reader, const char *letters, struct unit *unit)
{
    if (*letters != 'z') {
        reader->is_bad |= *letters != '\0';
        return;
    }
    unit->has_augmentation = true;
    uint64_t bytes = take_uleb(reader);
    struct reader data = *reader;
    for (letters++; *letters; letters++) {
        if (*letters == 'R')
            unit->address_encoding = (uint8_t)take(&data, 1);
        else if (*letters == 'P')
            skip_encoded(&data, (uint8_t)take(&data, 1));
        else if (*letters == 'L')
            take(&data, 1);
    }
    reader->is_bad |= data.is_bad || bytes > (size_t)(reader->end - reader->at);
    if (!reader->is_bad)
        reader->at += bytes;
}

static bool read_unit(const uint8_t *cie, struct unit *unit)
{
    struct reader reader = read_entry(cie);
    *unit = (struct unit){.address_encoding = WIDTH_OF_ADDRESS};
    take(&reader, 4);
    uint64_t version = take(&reader, 1);
    const char *letters = (const char *)reader.at;
    reader.at += strlen(letters) + 1;
    unit->code_align = take_uleb(&reader);
    unit->data_align = take_sleb(&reader);
    unit->return_column = version == 1 ? take(&reader, 1) : take_uleb(&reader);
    read_augmentation(&reader, letters, unit);
    unit->instructions = reader;
    return !reader.is_bad && (version == 1 || version == 3);
}

/* The function's own instructions, and the unit that it belongs to. */
static bool read_function(const uint8_t *fde, struct reader *instructions, struct unit *unit)
{
    struct reader reader = read_entry(fde);
    const uint8_t *here = reader.at;
    int32_t back = (int32_t)(uint32_t)take(&reader, 4);
    if (reader.is_bad || !read_unit(here - back, unit))
        return false;
    skip_encoded(&reader, unit->address_encoding);
    skip_encoded(&reader, unit->address_encoding & WIDTH);
    uint64_t bytes = unit->has_augmentation ? take_uleb(&reader) : 0;
    if (reader.is_bad || bytes > (size_t)(reader.end - reader.at))
        return false;
    reader.at += bytes;
    *instructions = reader;
    return true;
}

/* --- instructions ---------------------------------------------------------------------------- */

static void keep_at(struct machine *machine, uint64_t reg, int64_t offset)
{
    struct gos_cfa_rule *rule = machine->rule;
    if (offset < rule->lowest)
        rule->lowest = offset;
    if (reg != machine->unit->return_column)
        return;
    rule->return_offset = offset;
    rule->has_return = true;
}

/* The two expressions that compilers write: a place in the frame, or what is kept there. */
static void define_by_expression(struct machine *machine, struct reader *reader)
{
    uint64_t bytes = take_uleb(reader);
    struct reader words = *reader;
    machine->now.is_known = false;
    if (bytes > (size_t)(reader->end - reader->at)) {
        reader->is_bad = true;
        return;
    }
    reader->at += bytes;
    words.end = reader->at;
    uint64_t operation = take(&words, 1);
    if (operation < REGISTER_PLUS || operation > REGISTER_PLUS_LAST)
        return;
    int64_t offset = take_sleb(&words);
    bool is_kept = words.at < words.end;
    bool is_whole = (!is_kept || take(&words, 1) == WORD_AT) && words.at == words.end;
    machine->now = (struct state){is_whole && !words.is_bad, (uint32_t)(operation - REGISTER_PLUS),
                                  offset, !is_kept};
}

static void skip_block(struct reader *reader)
{
    uint64_t bytes = take_uleb(reader);
    reader->is_bad |= bytes > (size_t)(reader->end - reader->at);
    if (!reader->is_bad)
        reader->at += bytes;
}

static void put_aside(struct machine *machine, struct reader *reader)
{
    if (machine->aside_count == STATES_ASIDE)
        reader->is_bad = true;
    else
        machine->aside[machine->aside_count++] = machine->now;
}

static void bring_back(struct machine *machine, struct reader *reader)
{
    if (machine->aside_count == 0)
        reader->is_bad = true;
    else
        machine->now = machine->aside[--machine->aside_count];
}

static void define(struct machine *machine, uint64_t reg, int64_t offset)
{
    machine->now = (struct state){true, (uint32_t)reg, offset, true};
}

static void advance(struct machine *machine, uint64_t steps)
{
    machine->location += (uintptr_t)(steps * machine->unit->code_align);
}

static void run_one(struct machine *machine, struct reader *reader)
{
    int64_t data_align = machine->unit->data_align;
    uint64_t code = take(reader, 1);
    uint64_t operand = code & 0x3f;
    uint64_t reg;

    switch (code >> 6) {
    case ADVANCE:
        advance(machine, operand);
        return;
    case OFFSET:
        keep_at(machine, operand, (int64_t)take_uleb(reader) * data_align);
        return;
    case RESTORE:
        return;
    default:
        break;
    }
    switch (code) {
    case NOP:
        break;
    case ADVANCE_1:
        advance(machine, take(reader, 1));
        break;
    case ADVANCE_2:
        advance(machine, take(reader, 2));
        break;
    case ADVANCE_4:
        advance(machine, take(reader, 4));
        break;
    case OFFSET_EXTENDED:
        reg = take_uleb(reader);
        keep_at(machine, reg, (int64_t)take_uleb(reader) * data_align);
        break;
    case OFFSET_EXTENDED_SIGNED:
        reg = take_uleb(reader);
        keep_at(machine, reg, take_sleb(reader) * data_align);
        break;
    case RESTORE_EXTENDED:
    case SAME_VALUE:
    case ARGUMENTS_SIZE:
        take_uleb(reader);
        break;
    case UNDEFINED:
        if (take_uleb(reader) == machine->unit->return_column)
            machine->rule->has_return = false;
        break;
    case IN_REGISTER:
        take_uleb(reader);
        take_uleb(reader);
        break;
    case REMEMBER_STATE:
        put_aside(machine, reader);
        break;
    case RESTORE_STATE:
        bring_back(machine, reader);
        break;
    case DEF_CFA:
        reg = take_uleb(reader);
        define(machine, reg, (int64_t)take_uleb(reader));
        break;
    case DEF_CFA_SIGNED:
        reg = take_uleb(reader);
        define(machine, reg, take_sleb(reader) * data_align);
        break;
    case DEF_CFA_REGISTER:
        define(machine, take_uleb(reader), machine->now.offset);
        break;
    case DEF_CFA_OFFSET:
        define(machine, machine->now.reg, (int64_t)take_uleb(reader));
        break;
    case DEF_CFA_OFFSET_SIGNED:
        define(machine, machine->now.reg, take_sleb(reader) * data_align);
        break;
    case DEF_CFA_EXPRESSION:
        define_by_expression(machine, reader);
        break;
    case EXPRESSION:
        reg = take_uleb(reader);
        if (reg == machine->unit->return_column)
            machine->rule->has_return = false;
        skip_block(reader);
        break;
    default:
        reader->is_bad = true;
    }
}

static bool run(struct machine *machine, struct reader reader)
{
    while (reader.at < reader.end && !reader.is_bad && machine->location < machine->limit)
        run_one(machine, &reader);
    return !reader.is_bad;
}

bool gos_cfa_rule_find(const void *fde, uintptr_t start, uintptr_t address,
                       struct gos_cfa_rule *rule)
{
    struct unit unit;
    struct reader instructions;
    struct machine machine = {.unit = &unit, .location = start, .limit = address, .rule = rule};

    *rule = (struct gos_cfa_rule){0};
    if (!read_function(fde, &instructions, &unit) || !run(&machine, unit.instructions) ||
        !run(&machine, instructions) || !machine.now.is_known)
        return false;
    rule->reg = machine.now.reg;
    rule->offset = machine.now.offset;
    rule->is_in_frame = machine.now.is_in_frame;
    return true;
}
