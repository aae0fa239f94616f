#include "python_layout.h"

#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"

#define OLDEST_MINOR 8

static const struct gos_python_layout layouts[] = {
    /* 3.8 */
    {.has_frame_objects = true,
     .thread_frame = 24,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_position = 104,
     .position_scale = 1,
     .code_firstline = 40,
     .code_file = 104,
     .code_name = 112,
     .code_function = 112,
     .code_lines = 120,
     .text_ascii = 48,
     .text_compact = 72,
     .code_mask = UINT64_MAX,
     .lines = GOS_PYTHON_LINES_LNOTAB},
    /* 3.9 */
    {.has_frame_objects = true,
     .thread_frame = 24,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_position = 104,
     .position_scale = 1,
     .code_firstline = 40,
     .code_file = 104,
     .code_name = 112,
     .code_function = 112,
     .code_lines = 120,
     .text_ascii = 48,
     .text_compact = 72,
     .code_mask = UINT64_MAX,
     .lines = GOS_PYTHON_LINES_LNOTAB},
    /* 3.10 */
    {.has_frame_objects = true,
     .thread_frame = 24,
     .frame_previous = 24,
     .frame_code = 32,
     .frame_position = 96,
     .position_scale = 2,
     .code_firstline = 40,
     .code_file = 104,
     .code_name = 112,
     .code_function = 112,
     .code_lines = 120,
     .text_ascii = 48,
     .text_compact = 72,
     .code_mask = UINT64_MAX,
     .lines = GOS_PYTHON_LINES_RANGES},
    /* 3.11 */
    {.has_cframe = true,
     .thread_frame = 56,
     .cframe_current = 8,
     .frame_previous = 48,
     .frame_code = 32,
     .frame_position = 56,
     .frame_owner = 69,
     .code_firstline = 72,
     .code_file = 112,
     .code_name = 120,
     .code_function = 128,
     .code_lines = 136,
     .code_instructions = 184,
     .text_ascii = 48,
     .text_compact = 72,
     .code_mask = UINT64_MAX,
     .lines = GOS_PYTHON_LINES_LOCATIONS},
    /* 3.12 */
    {.has_cframe = true,
     .thread_frame = 56,
     .cframe_current = 0,
     .frame_previous = 8,
     .frame_code = 0,
     .frame_position = 56,
     .frame_owner = 70,
     .code_firstline = 68,
     .code_version = 92,
     .code_file = 112,
     .code_name = 120,
     .code_function = 128,
     .code_lines = 136,
     .code_instructions = 192,
     .text_ascii = 40,
     .text_compact = 56,
     .code_mask = UINT64_MAX,
     .lines = GOS_PYTHON_LINES_LOCATIONS},
    /* 3.13 */
    {.thread_frame = 72,
     .frame_previous = 8,
     .frame_code = 0,
     .frame_position = 56,
     .frame_owner = 70,
     .code_firstline = 68,
     .code_version = 92,
     .code_file = 112,
     .code_name = 120,
     .code_function = 128,
     .code_lines = 136,
     .code_instructions = 200,
     .text_ascii = 40,
     .text_compact = 56,
     .code_mask = UINT64_MAX,
     .lines = GOS_PYTHON_LINES_LOCATIONS},
    /* 3.14 */
    {.thread_frame = 72,
     .frame_previous = 8,
     .frame_code = 0,
     .frame_position = 56,
     .frame_owner = 74,
     .code_firstline = 68,
     .code_version = 92,
     .code_file = 112,
     .code_name = 120,
     .code_function = 128,
     .code_lines = 136,
     .code_instructions = 208,
     .text_ascii = 40,
     .text_compact = 56,
     .code_mask = ~UINT64_C(7),
     .lines = GOS_PYTHON_LINES_LOCATIONS},
};

/* _Py_DebugOffsets: a cookie, then 64-bit words; here which word says what. */
struct self_description {
    uint16_t thread_frame;
    uint16_t frame_previous;
    uint16_t frame_code;
    uint16_t frame_position;
    uint16_t frame_owner;
    uint16_t code_file;
    uint16_t code_name;
    uint16_t code_function;
    uint16_t code_lines;
    uint16_t code_firstline;
    uint16_t code_instructions;
    uint16_t object_header; /* size of what every object begins with */
};
static const struct self_description description_3_13 = {184, 232, 240, 248, 264, 280,
                                                         288, 296, 304, 312, 344, 352};
static const struct self_description description_3_14 = {208, 256, 264, 272, 288, 320,
                                                         328, 336, 344, 352, 384, 400};

/* What every object begins with: a count and a type; without the GIL, more before the type. */
#define HEADER 16
#define HEADER_MAX 64

#define DESCRIPTION_COOKIE "xdebugpy"
#define DESCRIPTION_VERSION 8
#define DESCRIPTION_FREE_THREADED 16
/* No member that we read lies further inside its object. */
#define OFFSET_LIMIT 4096

static uint64_t word_at(const void *runtime, size_t position)
{
    uint64_t word;
    memcpy(&word, (const char *)runtime + position, sizeof word);
    return word;
}

/* Take over one described offset; nonsense leaves the table's. */
static void adopt(uint16_t *offset, const void *runtime, uint16_t position)
{
    uint64_t word = word_at(runtime, position);
    if (word < OFFSET_LIMIT)
        *offset = (uint16_t)word;
}

/* The table is for the usual header; behind a larger one all members lie so much further. */
static void place_objects(struct gos_python_layout *layout, uint16_t header)
{
    uint16_t further = (uint16_t)(header - HEADER);
    layout->object_type = (uint16_t)(header - sizeof(void *));
    layout->object_size = header;
    layout->bytes_data = (uint16_t)(header + 16);
    layout->text_length = header;
    layout->text_hash = (uint16_t)(header + 8);
    layout->text_state = (uint16_t)(header + 16);
    layout->text_ascii = (uint16_t)(layout->text_ascii + further);
    layout->text_compact = (uint16_t)(layout->text_compact + further);
    if (layout->code_version)
        layout->code_version = (uint16_t)(layout->code_version + further);
}

static uint16_t described_header(const void *runtime, const struct self_description *at)
{
    uint64_t header = word_at(runtime, at->object_header);
    return header >= HEADER && header <= HEADER_MAX && header % 8 == 0 ? (uint16_t)header : HEADER;
}

static void adopt_all(struct gos_python_layout *layout, const void *runtime,
                      const struct self_description *at)
{
    adopt(&layout->thread_frame, runtime, at->thread_frame);
    adopt(&layout->frame_previous, runtime, at->frame_previous);
    adopt(&layout->frame_code, runtime, at->frame_code);
    adopt(&layout->frame_position, runtime, at->frame_position);
    adopt(&layout->frame_owner, runtime, at->frame_owner);
    adopt(&layout->code_file, runtime, at->code_file);
    adopt(&layout->code_name, runtime, at->code_name);
    adopt(&layout->code_function, runtime, at->code_function);
    adopt(&layout->code_lines, runtime, at->code_lines);
    adopt(&layout->code_firstline, runtime, at->code_firstline);
    adopt(&layout->code_instructions, runtime, at->code_instructions);
}

static bool describes_itself(const void *runtime, uint32_t version_hex)
{
    return runtime && memcmp(runtime, DESCRIPTION_COOKIE, strlen(DESCRIPTION_COOKIE)) == 0 &&
           word_at(runtime, DESCRIPTION_VERSION) == version_hex;
}

static const char *unknown_version(unsigned major, unsigned minor)
{
    char buffer[64];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_text_format(&text, "CPython %u.%u is not known", major, minor);
    const char *why = gos_arena_intern(text.data, text.length);
    return why ? why : "this version of CPython is not known";
}

/* What the interpreter says of itself, from 3.13 on. */
static void refine(struct gos_python_layout *layout, const void *runtime, unsigned minor)
{
    const struct self_description *at = minor == 13 ? &description_3_13 : &description_3_14;
    adopt_all(layout, runtime, at);
    layout->is_free_threaded = word_at(runtime, DESCRIPTION_FREE_THREADED) != 0;
    layout->has_copies = layout->is_free_threaded && minor >= 14;
    place_objects(layout, described_header(runtime, at));
}

const char *gos_python_layout_find(uint32_t version_hex, const void *runtime,
                                   struct gos_python_layout *layout)
{
    unsigned major = version_hex >> 24;
    unsigned minor = version_hex >> 16 & 0xff;
    size_t count = sizeof layouts / sizeof layouts[0];
    if (major != 3 || minor < OLDEST_MINOR || minor - OLDEST_MINOR >= count)
        return unknown_version(major, minor);
    *layout = layouts[minor - OLDEST_MINOR];
    if (minor >= 13 && describes_itself(runtime, version_hex))
        refine(layout, runtime, minor);
    else
        place_objects(layout, HEADER);
    return NULL;
}
