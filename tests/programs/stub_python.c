/*
 * A library that looks like an interpreter to whoever reads its frames: the
 * exported names, a thread state, two frames and a stand-in below them, laid out
 * as CPython 3.14 publishes its structures (Include/cpython/code.h,
 * Include/internal/pycore_interpframe_structs.h, pycore_debug_offsets.h).
 *
 * With STUB_FREE_THREADED as builds without the GIL lay them out; there the newest
 * frame runs a thread's own copy of the bytecode.
 *
 * STUB_PYTHON: the words of Py_GetVersion, "3.14.2 (main)" when unset.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef STUB_FREE_THREADED
enum { FREE_THREADED = 1, KIND_SHIFT = 8, HEADER = 32 };
#define VERSION_WORDS "3.14.2 free-threading build (main)"
struct object {
    uint64_t owner, flags_and_references;
    int64_t shared_references;
    const void *type;
};
#else
enum { FREE_THREADED = 0, KIND_SHIFT = 2, HEADER = 16 };
#define VERSION_WORDS "3.14.2 (main)"
struct object {
    int64_t references;
    const void *type;
};
#endif
char PyCode_Type[400];
#define OBJECT                                                                                     \
    {                                                                                              \
        .type = PyCode_Type                                                                        \
    }

struct text {
    struct object object;
    int64_t length;
    int64_t hash;
    uint32_t state, padding;
    char data[44];
};

struct bytes {
    struct object object;
    int64_t size;
    int64_t hash;
    uint8_t data[24];
};

struct code {
    struct object object;
    int64_t size;
    const void *consts, *names, *exceptions;
    int32_t flags, argument_count, positional_count, keyword_count, stack_size;
    int32_t first_line;
    int32_t local_counts[5];
    uint32_t version;
    const void *local_names, *local_kinds;
    const struct text *file, *name, *qualified_name;
    const struct bytes *lines;
    const void *weak_references, *executors, *cached;
    uintptr_t instrumentation_version;
    const void *monitoring;
    int64_t unique_id;
    int32_t first_traceable;
    const void *extra;
#ifdef STUB_FREE_THREADED
    const void *copies;
#endif
    uint16_t instructions[8];
};
_Static_assert(offsetof(struct code, first_line) == 52 + HEADER, "as published");
_Static_assert(offsetof(struct code, version) == 76 + HEADER, "as published");
_Static_assert(offsetof(struct code, lines) == 120 + HEADER, "as published");
_Static_assert(offsetof(struct code, instructions) == 192 + HEADER + 8 * FREE_THREADED,
               "as published");

struct frame {
    uintptr_t code; /* tagged */
    struct frame *previous;
    const void *function, *globals, *builtins, *locals, *object;
    const uint16_t *instruction;
    const void *stack_pointer;
#ifdef STUB_FREE_THREADED
    int32_t copy;
#endif
    uint16_t return_offset;
    char owner;
    uint8_t visited;
};
_Static_assert(offsetof(struct frame, owner) == 74 + 4 * FREE_THREADED, "as published");

struct thread_state {
    const void *before[9];
    struct frame *frame;
};
_Static_assert(offsetof(struct thread_state, frame) == 72, "as published");

/* In words of eight bytes: where the description says what. */
enum {
    AT_THREAD_FRAME = 208 / 8,
    AT_FRAME_PREVIOUS = 256 / 8,
    AT_FRAME_CODE = 264 / 8,
    AT_FRAME_INSTRUCTION = 272 / 8,
    AT_FRAME_OWNER = 288 / 8,
    AT_CODE_FILE = 320 / 8,
    AT_CODE_NAME = 328 / 8,
    AT_CODE_QUALIFIED_NAME = 336 / 8,
    AT_CODE_LINES = 344 / 8,
    AT_CODE_FIRST_LINE = 352 / 8,
    AT_CODE_INSTRUCTIONS = 384 / 8,
    AT_OBJECT_SIZE = 400 / 8,
    WORDS = 800 / 8
};

enum { OWNED_BY_THREAD = 0, OWNED_BY_INTERPRETER = 3, TAG = 1 };

const unsigned long Py_Version = 0x030e02f0;
uint64_t _PyRuntime[WORDS] = {
    UINT64_C(0x7970677562656478), /* "xdebugpy" */
    0x030e02f0,
    FREE_THREADED,
    [AT_THREAD_FRAME] = offsetof(struct thread_state, frame),
    [AT_FRAME_PREVIOUS] = offsetof(struct frame, previous),
    [AT_FRAME_CODE] = offsetof(struct frame, code),
    [AT_FRAME_INSTRUCTION] = offsetof(struct frame, instruction),
    [AT_FRAME_OWNER] = offsetof(struct frame, owner),
    [AT_CODE_FILE] = offsetof(struct code, file),
    [AT_CODE_NAME] = offsetof(struct code, name),
    [AT_CODE_QUALIFIED_NAME] = offsetof(struct code, qualified_name),
    [AT_CODE_LINES] = offsetof(struct code, lines),
    [AT_CODE_FIRST_LINE] = offsetof(struct code, first_line),
    [AT_CODE_INSTRUCTIONS] = offsetof(struct code, instructions),
    [AT_OBJECT_SIZE] = sizeof(struct object),
};

/* Compact ASCII, one byte a character. */
#define TEXT(words)                                                                                \
    {                                                                                              \
        OBJECT, sizeof(words) - 1, -1, (1u | 1u << 3 | 1u << 4) << KIND_SHIFT, 0, words            \
    }

static const struct text file = TEXT("/model/train.py");
static const struct text inner_name = TEXT("Model.forward");
static const struct text outer_name = TEXT("<module>");

/* Two entries, each a line without columns: +0 for two instructions, +5 for the others. */
static const struct bytes lines = {OBJECT, 4, -1, {0xe9, 0x00, 0xed, 0x0a}};

static struct code inner = {.object = OBJECT,
                            .size = 8,
                            .first_line = 40,
                            .version = 7,
                            .file = &file,
                            .name = &inner_name,
                            .qualified_name = &inner_name,
                            .lines = &lines};
static struct code outer = {.object = OBJECT,
                            .size = 8,
                            .first_line = 100,
                            .version = 8,
                            .file = &file,
                            .name = &outer_name,
                            .qualified_name = &outer_name,
                            .lines = &lines};

#ifdef STUB_FREE_THREADED
static const uint16_t running[8];
#else
#define running inner.instructions
#endif

static struct frame frames[3];
static struct thread_state state;

int Py_IsInitialized(void);
const char *Py_GetVersion(void);
void *PyGILState_GetThisThreadState(void);

int Py_IsInitialized(void)
{
    return 1;
}

const char *Py_GetVersion(void)
{
    const char *words = getenv("STUB_PYTHON");
    return words ? words : VERSION_WORDS;
}

/* Newest: the fourth instruction of inner, called from the first of outer. */
void *PyGILState_GetThisThreadState(void)
{
    frames[0] = (struct frame){.code = (uintptr_t)&inner | TAG,
                               .previous = &frames[1],
                               .instruction = &running[3],
                               .owner = OWNED_BY_THREAD};
    frames[1] = (struct frame){.code = (uintptr_t)&outer | TAG,
                               .previous = &frames[2],
                               .instruction = &outer.instructions[0],
                               .owner = OWNED_BY_THREAD};
    frames[2] = (struct frame){.code = (uintptr_t)&outer | TAG, .owner = OWNED_BY_INTERPRETER};
    state.frame = &frames[0];
    return &state;
}
