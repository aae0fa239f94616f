/*
 * What the host of the per-row test and its stand-ins for libcuda and
 * libcudart agree on.  Nothing here knows a function's parameters: arguments
 * travel as machine words, and signatures.cc says what they are.
 */
#ifndef ROWS_H
#define ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Registers and stack (row_abi.h): more than any row needs. */
#define SLOT_COUNT 16
#define WORDS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

#define PARAMETER_MAX 12
#define ROW_BUFFER_BYTES 512 /* behind each parameter that is a pointer */
struct row_parameter {
    uint8_t bytes;
    bool is_pointer;
};
struct row_signature {
    uint8_t count;
    struct row_parameter parameters[PARAMETER_MAX];
};
extern const struct row_signature row_signatures[];

/* The current context of every thread, and the size of whatever is imported. */
#define ROW_CONTEXT 0x51000
#define ROW_GRAPH 0x60800 /* into which whatever is captured goes */
#define ROW_IMPORTED_BYTES 0x51515

/* What the stand-ins do; each exports one as `row_script`. */
#define WRITE_MAX 2
struct row_script {
    int row;             /* the one under test: the only one that writes */
    int result;          /* of every row */
    void (*below)(void); /* what the runtime asks of the driver on the way; NULL: nothing */
    /* The word that points to a structure that travels so, and its size; 0 bytes: there is none. */
    int structure_slot;
    unsigned structure_bytes;
    struct {
        uint64_t *to; /* written on success: an out-parameter */
        uint64_t value;
    } writes[WRITE_MAX];
};

/* What they saw: an array by row, exported as `row_calls`. */
struct row_call {
    int count;
    uint64_t words[SLOT_COUNT];
    unsigned char structure[ROW_BUFFER_BYTES]; /* gone with the caller's frame, so copied */
};

static inline void row_call_note(struct row_call *call, const struct row_script *script,
                                 const uint64_t *words, bool is_under_test)
{
    call->count++;
    memcpy(call->words, words, sizeof call->words);
    if (is_under_test && script->structure_bytes > 0)
        memcpy(call->structure, (const void *)(uintptr_t)words[script->structure_slot],
               script->structure_bytes);
}

#endif
