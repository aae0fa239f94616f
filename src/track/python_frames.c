#include "python_frames.h"

#include <string.h>

#include "python_cut.h"
#include "python_guard.h"
#include "python_layout.h"
#include "python_text.h"
#include "stack_hash.h"

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

static bool is_code(const struct gos_interpreter *python, uintptr_t code)
{
    return code && code % sizeof(uintptr_t) == 0 &&
           word_at(code + python->layout.object_type) == python->code_type;
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

/* The same where the instruction may lie in another copy of the bytecode: there it is 0. */
static uint32_t position_in_object(const struct gos_python_layout *layout, uintptr_t frame,
                                   uintptr_t code)
{
    uintptr_t start = code + layout->code_instructions;
    uintptr_t position = word_at(frame + layout->frame_position) - start;
    uintptr_t bytes = word_at(code + layout->object_size) * GOS_PYTHON_INSTRUCTION;
    return position < bytes ? (uint32_t)position : 0;
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

static bool holds_code(const struct gos_interpreter *python, uintptr_t frame)
{
    const struct gos_python_layout *layout = &python->layout;
    uintptr_t code = word_at(frame + layout->frame_code) & layout->code_mask;
    return !is_stand_in(layout, frame) && is_code(python, code);
}

/* From here outward to the next frame that runs a code object; 0: there is none. */
static __attribute__((noinline)) uintptr_t skip_others(const struct gos_interpreter *python,
                                                       uintptr_t frame)
{
    for (uint32_t walked = 0; frame && walked < WALK_MAX; walked++) {
        if (holds_code(python, frame))
            return frame;
        frame = word_at(frame + python->layout.frame_previous);
    }
    return 0;
}

static uintptr_t outward(const struct gos_interpreter *python, uintptr_t frame)
{
    return skip_others(python, word_at(frame + python->layout.frame_previous));
}

static inline __attribute__((always_inline)) bool
read_object(const struct gos_interpreter *python, uintptr_t frame, struct gos_python_ref *ref)
{
    const struct gos_python_layout *layout = &python->layout;
    uintptr_t code = word_at(frame + layout->frame_code);
    if (!is_code(python, code))
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
    if (is_stand_in(layout, frame) || !is_code(python, code))
        return false;
    ref->code = code;
    ref->offset = position_of(layout, frame, code);
    ref->guard = guard_of(layout, code);
    return true;
}

static inline __attribute__((always_inline)) bool
read_copied(const struct gos_interpreter *python, uintptr_t frame, struct gos_python_ref *ref)
{
    if (!read_frame(python, frame, ref))
        return false;
    ref->offset = position_in_object(&python->layout, frame, ref->code);
    return true;
}

typedef bool frame_reader(const struct gos_interpreter *, uintptr_t, struct gos_python_ref *);

static frame_reader *reader_of(const struct gos_python_layout *layout)
{
    if (layout->has_frame_objects)
        return read_object;
    return layout->has_copies ? read_copied : read_frame;
}

/*
 * Returns the frame after those that were kept.  Takes the interpreter by value: what is written to
 * the stack then cannot change the offsets, which stay in registers.
 */
static inline __attribute__((always_inline)) uintptr_t walk(struct gos_interpreter python,
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
    return frame;
}

/* More frames than fit: see python_cut.h. */
static __attribute__((noinline)) void cut(const struct gos_interpreter *python, frame_reader *read,
                                          uintptr_t frame, struct gos_stack *stack)
{
    struct gos_python_further further = {.count = 0};
    for (frame = skip_others(python, frame); frame && further.count < GOS_PYTHON_FURTHER_MAX;
         frame = outward(python, frame)) {
        struct gos_python_ref ref;
        if (read(python, frame, &ref))
            gos_python_further_add(&further, &ref);
    }
    if (further.count == 0)
        return;
    gos_python_cut(stack->python, stack->python_count, &further);
    stack->python_hash = gos_stack_hash_python(stack->python, stack->python_count);
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
    frame_reader *read = reader_of(&python->layout);
    if (read == read_object)
        frame = walk(*python, read_object, frame, stack, max);
    else if (read == read_copied)
        frame = walk(*python, read_copied, frame, stack, max);
    else
        frame = walk(*python, read_frame, frame, stack, max);
    if (frame && max >= GOS_PYTHON_CUT_MIN && stack->python_count == max)
        cut(python, read, frame, stack);
}

/* --- comparing ------------------------------------------------------------------------------ */

/* At the mark of a stack that was cut: is this one's ending the same? */
static __attribute__((noinline)) bool is_cut_likewise(const struct gos_python_ref *refs,
                                                      uint32_t count)
{
    struct gos_stack stack;
    gos_python_capture(&stack, count);
    return stack.python_count == count && memcmp(stack.python, refs, count * sizeof *refs) == 0;
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
           (layout->has_copies ? position_in_object(layout, frame, known->code)
                               : position_of(layout, frame, known->code)) == known->offset &&
           guard_of(layout, known->code) == known->guard;
}

static bool compare(const struct gos_interpreter *python, frame_comparer *is_same, uintptr_t frame,
                    const struct gos_python_ref *refs, uint32_t count, uint32_t max)
{
    frame = skip_others(python, frame);
    for (uint32_t i = 0; i < count; i++) {
        if (!frame || !is_same(&python->layout, frame, &refs[i]))
            return !refs[i].code && is_cut_likewise(refs, count);
        frame = outward(python, frame);
    }
    return !frame || (count == max && max < GOS_PYTHON_CUT_MIN);
}

/*
 * Each frame says where the next one is, so that a walk waits for one load after
 * the other.  A frame mostly lies where the one of its depth lay last time: the
 * processor goes on from there at once, and what it guessed is checked behind.
 * That the two are equal is hidden, or the compiler would take the slow one.
 */
static inline uintptr_t next_frame(uintptr_t next, uintptr_t *place)
{
    uintptr_t guessed = *place;
    uintptr_t result = guessed;

    __asm__("" : "+r"(result));
    if (__builtin_expect(next != guessed, 0)) {
        *place = next;
        return next;
    }
    return result;
}

/*
 * The same for versions that number their code objects, where most time is
 * spent: offsets are in registers, and where the code object is the known one,
 * that it is one was seen when it became known.
 */
static bool compare_numbered(const struct gos_interpreter *python, uintptr_t frame,
                             const struct gos_python_ref *refs, uint32_t count, uint32_t max,
                             struct gos_python_places *places)
{
    uintptr_t *place = places->outermost + count;

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
            return !known->code && is_cut_likewise(refs, count);
        intptr_t position = (intptr_t)(word_at(frame + position_at) - known->code - start);
        if (position != known->offset && (known->offset || position > 0))
            return false;
        frame = next_frame(word_at(frame + previous_at), --place);
    }
    return !skip_others(python, frame) || (count == max && max < GOS_PYTHON_CUT_MIN);
}

bool gos_python_matches(const struct gos_python_ref *refs, uint32_t count, uint32_t max,
                        struct gos_python_places *places)
{
    const struct gos_interpreter *python = gos_python_current();
    uintptr_t frame = top_of(python);
    if (!frame)
        return count == 0;
    if (python->layout.code_version && !python->layout.has_copies)
        return compare_numbered(python, frame, refs, count, max, places);
    bool has_objects = python->layout.has_frame_objects;
    return compare(python, has_objects ? is_same_object : is_same_frame, frame, refs, count, max);
}

bool gos_python_ref_of(uintptr_t code, uint32_t offset, struct gos_python_ref *ref)
{
    const struct gos_interpreter *python = gos_python_current();
    if (!python || !is_code(python, code))
        return false;
    *ref = (struct gos_python_ref){
        .code = code, .offset = offset, .guard = guard_of(&python->layout, code)};
    return true;
}

/* --- decoding -------------------------------------------------------------------------------- */

static int line_of(const struct gos_python_layout *layout, const struct gos_python_ref *ref)
{
    int firstline = (int)half_at(ref->code + layout->code_firstline);
    uintptr_t table = word_at(ref->code + layout->code_lines);
    uintptr_t bytes = table ? word_at(table + layout->object_size) : 0;
    if (bytes > BYTES_MAX)
        return firstline;
    return gos_python_line(layout->lines, (const uint8_t *)(table + layout->bytes_data), bytes,
                           firstline, ref->offset);
}

bool gos_python_decode(const struct gos_python_ref *ref, struct gos_python_frame *frame)
{
    const struct gos_interpreter *python = gos_python_known();
    if (!python || !is_code(python, ref->code))
        return false;
    const struct gos_python_layout *layout = &python->layout;
    frame->file = gos_python_text(layout, word_at(ref->code + layout->code_file));
    frame->function = gos_python_text(layout, word_at(ref->code + layout->code_function));
    frame->line = line_of(layout, ref);
    return true;
}
