/*
 * Where CPython keeps what a stack needs: offsets into its thread state,
 * frames, code objects and strings, on 64-bit machines.
 *
 * The offsets of 3.8 to 3.13 were checked against the headers of each release,
 * 3.14's against the interpreter.  From 3.13 on it describes itself
 * (_Py_DebugOffsets at the start of _PyRuntime) and its word goes before ours.
 * Builds without the GIL are known only by that word: every object of theirs
 * begins with a larger header.  Of these 3.13 was compared with the interpreter;
 * 3.14's come from its published structures.
 */
#ifndef GOS_TRACK_PYTHON_LAYOUT_H
#define GOS_TRACK_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "python_lines.h"

struct gos_python_layout {
    /* 3.8 to 3.10 keep an index in a frame object; later versions a pointer to the instruction. */
    bool has_frame_objects;
    /* 3.11 and 3.12: thread state -> C frame -> current frame. */
    bool has_cframe;
    bool is_free_threaded;
    /*
     * Without the GIL, 3.14 gives each thread its own copy of the bytecode.  Only
     * the first lies in the code object; in the others a position is not known.
     */
    bool has_copies;
    uint16_t thread_frame; /* in the thread state: the newest frame, or the C frame */
    uint16_t cframe_current;
    uint16_t frame_previous;
    uint16_t frame_code;
    uint16_t frame_position; /* index of the instruction, or pointer to it */
    uint16_t frame_owner;    /* byte that tells stand-ins from frames; 0: there is none */
    uint16_t position_scale; /* bytes for one step of the index */
    uint16_t code_firstline;
    uint16_t code_file;
    uint16_t code_name;
    uint16_t code_version;  /* number that no other code object has; 0: there is none */
    uint16_t code_function; /* qualified name where there is one */
    uint16_t code_lines;
    uint16_t code_instructions; /* start of the bytecode; only without frame objects */
    uint16_t object_type;
    uint16_t object_size; /* of a bytes its length, of a code object its instructions */
    uint16_t bytes_data;
    uint16_t text_length;
    uint16_t text_hash; /* of a str: -1 while nobody has asked for it */
    uint16_t text_state;
    uint16_t text_ascii; /* where a str's characters start */
    uint16_t text_compact;
    uint64_t code_mask; /* clears tag bits of the pointer to the code object */
    enum gos_python_lines lines;
};

/* Owners from this number on are the interpreter's own stand-ins, not Python code. */
#define GOS_PYTHON_OWNER_STAND_IN 3

/* Bytes of one instruction of the bytecode, by which object_size counts it. */
#define GOS_PYTHON_INSTRUCTION 2

/* Why there is none for a build without the GIL that does not say where its objects lie. */
#define GOS_PYTHON_FREE_THREADED "this free-threaded build of CPython does not describe itself"

/*
 * Layout for a version as PY_VERSION_HEX writes it.  `runtime` is the address
 * of _PyRuntime, or NULL.  NULL on success, else why there is none (permanent
 * text).
 */
const char *gos_python_layout_find(uint32_t version_hex, const void *runtime,
                                   struct gos_python_layout *layout);

#endif
