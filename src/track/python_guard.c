#include "python_guard.h"

#include <string.h>

#include "python_text.h"

#define NO_HASH UINT64_MAX
/* Odd constants; one multiplication each, so that none waits for another. */
#define MULTIPLIER_1 UINT64_C(0x9e3779b97f4a7c15)
#define MULTIPLIER_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define MULTIPLIER_3 UINT64_C(0x165667b19e3779f9)
#define MULTIPLIER_4 UINT64_C(0xd6e8feb86659fd93)

static uint64_t word_at(uintptr_t address)
{
    uint64_t word;
    memcpy(&word, (const void *)address, sizeof word);
    return word;
}

static uint32_t half_at(uintptr_t address)
{
    uint32_t half;
    memcpy(&half, (const void *)address, sizeof half);
    return half;
}

/* File names differ at their end, be it by a number: "<cell 17>", "/tmp/k_1/3456.py". */
static uint64_t mix_tail(struct gos_python_span span)
{
    uint64_t tail[2] = {0};
    size_t bytes = span.length * span.kind;
    if (bytes >= sizeof tail)
        memcpy(tail, span.data + bytes - sizeof tail, sizeof tail);
    else
        memcpy(tail, span.data, bytes);
    return (tail[0] ^ bytes) * MULTIPLIER_3 ^ tail[1] * MULTIPLIER_4;
}

/* Where a file's name does not carry its hash yet, its end must do. */
static uint64_t mix_file(const struct gos_python_layout *layout, uintptr_t string)
{
    uint64_t hash = string ? word_at(string + layout->text_hash) : 0;
    return hash != NO_HASH ? hash : mix_tail(gos_python_text_span(layout, string));
}

/* The names of functions are interned, and therefore hashed. */
static uint64_t mix_name(const struct gos_python_layout *layout, uintptr_t string)
{
    return string ? word_at(string + layout->text_hash) : 0;
}

/*
 * A code object that took a freed one's place may also have got its strings'
 * places, so those are told apart by what they hold.
 */
uint32_t gos_python_guard(const struct gos_python_layout *layout, uintptr_t code)
{
    uint64_t place =
        word_at(code + layout->code_lines) ^ (uint64_t)half_at(code + layout->code_firstline) << 40;
    uint64_t mixed = place * MULTIPLIER_1 ^ mix_file(layout, word_at(code + layout->code_file));
    mixed ^= mix_name(layout, word_at(code + layout->code_name)) * MULTIPLIER_2;
    return (uint32_t)(mixed >> 32 ^ mixed);
}
