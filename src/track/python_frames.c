#include "python_frames.h"

#include <string.h>

#include "python_guard.h"
#include "python_layout.h"
#include "python_text.h"
#include "stack_hash.h"

#define OBJECT_TYPE 8
#define BYTES_SIZE 16
#define BYTES_DATA 32
#define BYTES_MAX (1u << 24)

/* A chain of frames longer than this is damaged; CPython's own limit is far lower. */
#define WALK_MAX 4096

static uintptr_t word_at(uintptr_t address)
{
    uintptr_t word;
    memcpy(&word, (const void *)address, sizeof word);
    return word;
}

static uint32_t half_at(uintptr_t address)
{
    uint32_t half;
    memcpy(&half, (const void *)address, sizeof half);
    return half;
}

/* --- capturing ------------------------------------------------------------------------------ */

static bool is_code(uintptr_t code_type, uintptr_t code)
{
    return code && code % sizeof(uintptr_t) == 0 && word_at(code + OBJECT_TYPE) == code_type;
}

static uintptr_t newest_frame(const struct gos_python_layout *layout, uintptr_t thread_state)
{
    uintptr_t frame = word_at(thread_state + layout->thread_frame);
    return layout->has_cframe && frame ? word_at(frame + layout->cframe_current) : frame;
}

/*
 * From 3.12 on every code object has a number of its own (0 only after 2^32 of
 * them); before, its contents must tell it from one that had its address.
 */
static uint32_t guard_of(const struct gos_python_layout *layout, uintptr_t code)
{
    uint32_t version = layout->code_version ? half_at(code + layout->code_version) : 0;
    return version ? version : gos_python_guard(layout, code);
}

/* Bytes into the bytecode; 0 before the first instruction. */
static uint32_t position_of(const struct gos_python_layout *layout, uintptr_t frame, uintptr_t code)
{
    uintptr_t instruction = word_at(frame + layout->frame_position);
    uintptr_t start = code + layout->code_instructions;
    return instruction < start ? 0 : (uint32_t)(instruction - start);
}

static uint32_t index_of(const struct gos_python_layout *layout, uintptr_t frame)
{
    int32_t index = (int32_t)half_at(frame + layout->frame_position);
    return index < 0 ? 0 : (uint32_t)index * layout->position_scale;
}

static bool is_stand_in(const struct gos_python_layout *layout, uintptr_t frame)
{
    return layout->frame_owner &&
           *(const uint8_t *)(frame + layout->frame_owner) >= GOS_PYTHON_OWNER_STAND_IN;
}

static inline __attribute__((always_inline)) bool
read_object(const struct gos_interpreter *python, uintptr_t frame, struct gos_python_ref *ref)
{
    const struct gos_python_layout *layout = &python->layout;
    uintptr_t code = word_at(frame + layout->frame_code);
    if (!is_code(python->code_type, code))
        return false;
    ref->code = code;
    ref->offset = index_of(layout, frame);
    ref->guard = guard_of(layout, code);
    return true;
}

static inline __attribute__((always_inline)) bool
read_frame(const struct gos_interpreter *python, uintptr_t frame, struct gos_python_ref *ref)
{
    const struct gos_python_layout *layout = &python->layout;
    uintptr_t code = word_at(frame + layout->frame_code) & layout->code_mask;
    if (is_stand_in(layout, frame) || !is_code(python->code_type, code))
        return false;
    ref->code = code;
    ref->offset = position_of(layout, frame, code);
    ref->guard = guard_of(layout, code);
    return true;
}

typedef bool frame_reader(const struct gos_interpreter *, uintptr_t, struct gos_python_ref *);

/*
 * Takes the interpreter by value: what is written to the stack then cannot
 * change the offsets, which stay in registers.
 */
static inline __attribute__((always_inline)) void walk(struct gos_interpreter python,
                                                       frame_reader *read, uintptr_t frame,
                                                       struct gos_stack *stack, uint32_t max)
{
    uint64_t hash = GOS_STACK_HASH_START;
    uint32_t count = 0;
    for (uint32_t walked = 0; frame && count < max && walked < WALK_MAX; walked++) {
        struct gos_python_ref ref;
        if (read(&python, frame, &ref)) {
            stack->python[count++] = ref;
            hash = gos_stack_hash_add(hash, &ref);
        }
        frame = word_at(frame + python.layout.frame_previous);
    }
    stack->python_count = count;
    stack->python_hash = gos_stack_hash_finish(hash);
}

/* The calling thread's newest frame; 0: it runs no Python. */
static uintptr_t top_of(const struct gos_interpreter *python)
{
    uintptr_t thread_state = python ? (uintptr_t)python->thread_state() : 0;
    return thread_state ? newest_frame(&python->layout, thread_state) : 0;
}

void gos_python_capture(struct gos_stack *stack, uint32_t max)
{
    const struct gos_interpreter *python = gos_python_current();
    uintptr_t frame = top_of(python);
    stack->python_count = 0;
    stack->python_hash = 0;
    if (!frame)
        return;
    if (python->layout.has_frame_objects)
        walk(*python, read_object, frame, stack, max);
    else
        walk(*python, read_frame, frame, stack, max);
}

/* --- comparing ------------------------------------------------------------------------------ */

static bool holds_code(const struct gos_python_layout *layout, uintptr_t code_type, uintptr_t frame)
{
    uintptr_t code = word_at(frame + layout->frame_code) & layout->code_mask;
    return !is_stand_in(layout, frame) && is_code(code_type, code);
}

/* From here outward to the next frame that runs a code object; 0: there is none. */
static __attribute__((noinline)) uintptr_t skip_others(const struct gos_interpreter *python,
                                                       uintptr_t frame)
{
    for (uint32_t walked = 0; frame && walked < WALK_MAX; walked++) {
        if (holds_code(&python->layout, python->code_type, frame))
            return frame;
        frame = word_at(frame + python->layout.frame_previous);
    }
    return 0;
}

static uintptr_t outward(const struct gos_interpreter *python, uintptr_t frame)
{
    return skip_others(python, word_at(frame + python->layout.frame_previous));
}

typedef bool frame_comparer(const struct gos_python_layout *, uintptr_t frame,
                            const struct gos_python_ref *known);

static bool is_same_object(const struct gos_python_layout *layout, uintptr_t frame,
                           const struct gos_python_ref *known)
{
    return word_at(frame + layout->frame_code) == known->code &&
           index_of(layout, frame) == known->offset &&
           guard_of(layout, known->code) == known->guard;
}

static bool is_same_frame(const struct gos_python_layout *layout, uintptr_t frame,
                          const struct gos_python_ref *known)
{
    return (word_at(frame + layout->frame_code) & layout->code_mask) == known->code &&
           position_of(layout, frame, known->code) == known->offset &&
           guard_of(layout, known->code) == known->guard;
}

static bool compare(const struct gos_interpreter *python, frame_comparer *is_same, uintptr_t frame,
                    const struct gos_python_ref *refs, uint32_t count, uint32_t max)
{
    frame = skip_others(python, frame);
    for (uint32_t i = 0; i < count; i++) {
        if (!frame || !is_same(&python->layout, frame, &refs[i]))
            return false;
        frame = outward(python, frame);
    }
    return !frame || count == max;
}

/*
 * The same for versions that number their code objects, where most time is
 * spent: offsets are in registers, and where the code object is the known one,
 * that it is one was seen when it became known.
 */
static bool compare_numbered(const struct gos_interpreter *python, uintptr_t frame,
                             const struct gos_python_ref *refs, uint32_t count, uint32_t max)
{
    const struct gos_python_layout *layout = &python->layout;
    const uintptr_t code_at = layout->frame_code, previous_at = layout->frame_previous;
    const uintptr_t position_at = layout->frame_position, version_at = layout->code_version;
    const uintptr_t start = layout->code_instructions, mask = layout->code_mask;
    const struct gos_python_ref *const end = refs + count;

    for (const struct gos_python_ref *known = refs; known < end; known++) {
        if (frame && (word_at(frame + code_at) & mask) != known->code)
            frame = skip_others(python, frame);
        if (!frame || (word_at(frame + code_at) & mask) != known->code ||
            half_at(known->code + version_at) != known->guard)
            return false;
        intptr_t position = (intptr_t)(word_at(frame + position_at) - known->code - start);
        if (position != known->offset && (known->offset || position > 0))
            return false;
        frame = word_at(frame + previous_at);
    }
    return count == max || !skip_others(python, frame);
}

bool gos_python_matches(const struct gos_python_ref *refs, uint32_t count, uint32_t max)
{
    const struct gos_interpreter *python = gos_python_current();
    uintptr_t frame = top_of(python);
    if (!frame)
        return count == 0;
    if (python->layout.code_version)
        return compare_numbered(python, frame, refs, count, max);
    bool has_objects = python->layout.has_frame_objects;
    return compare(python, has_objects ? is_same_object : is_same_frame, frame, refs, count, max);
}

/* --- decoding -------------------------------------------------------------------------------- */

static int line_of(const struct gos_python_layout *layout, const struct gos_python_ref *ref)
{
    int firstline = (int)half_at(ref->code + layout->code_firstline);
    uintptr_t table = word_at(ref->code + layout->code_lines);
    uintptr_t bytes = table ? word_at(table + BYTES_SIZE) : 0;
    if (bytes > BYTES_MAX)
        return firstline;
    return gos_python_line(layout->lines, (const uint8_t *)(table + BYTES_DATA), bytes, firstline,
                           ref->offset);
}

bool gos_python_decode(const struct gos_python_ref *ref, struct gos_python_frame *frame)
{
    const struct gos_interpreter *python = gos_python_known();
    if (!python || !is_code(python->code_type, ref->code))
        return false;
    const struct gos_python_layout *layout = &python->layout;
    frame->file = gos_python_text(layout, word_at(ref->code + layout->code_file));
    frame->function = gos_python_text(layout, word_at(ref->code + layout->code_function));
    frame->line = line_of(layout, ref);
    return true;
}
