#include "python_exception.h"

#include <stddef.h>
#include <string.h>

#include "../base/text.h"
#include "../track/python_frames.h"
#include "../track/site.h"

#define CHAIN_MAX 32
#define TRACEBACK_MAX 100000
#define NAME_BYTES 64
#define MESSAGE_BYTES 2048

typedef const struct gos_python_api *python;

static void let_go(python py, void *object)
{
    if (object)
        py->Py_DecRef(object);
}

/* A new reference; NULL: there is none, and nothing is set. */
static void *attribute(python py, void *object, const char *name)
{
    void *value = object ? py->PyObject_GetAttrString(object, name) : NULL;

    if (!value)
        py->PyErr_Clear();
    return value;
}

/* Takes the reference. */
static void copy_string(python py, void *string, char *buffer, size_t bytes)
{
    const char *words = string ? py->PyUnicode_AsUTF8(string) : NULL;
    struct gos_text text = gos_text_on(buffer, bytes);

    if (words)
        gos_text_put(&text, words);
    else
        py->PyErr_Clear();
    let_go(py, string);
}

/* --- where ---------------------------------------------------------------------------------- */

static bool put_frame(python py, void *frame, void *position, struct gos_stack *stack)
{
    void *code = attribute(py, frame, "f_code");
    long offset = position ? py->PyLong_AsLong(position) : -1;
    bool is_read = code && stack->python_count < GOS_FRAME_MAX &&
                   gos_python_ref_of((uintptr_t)code, offset < 0 ? 0u : (uint32_t)offset,
                                     &stack->python[stack->python_count]);

    py->PyErr_Clear();
    stack->python_count += is_read;
    let_go(py, code); /* a frame keeps it alive */
    return is_read;
}

/* Takes the reference to a link of a traceback and gives one to the next. */
static void *next_link(python py, void *link)
{
    void *next = attribute(py, link, "tb_next");
    void *none_type = next ? py->PyObject_Type(next) : NULL;
    void *own_type = py->PyObject_Type(link);
    bool goes_on = next && none_type == own_type;

    let_go(py, none_type);
    let_go(py, own_type);
    let_go(py, link);
    if (!goes_on)
        let_go(py, next);
    return goes_on ? next : NULL;
}

static uint32_t length_of(python py, void *traceback)
{
    uint32_t length = 0;

    py->Py_IncRef(traceback);
    for (void *link = traceback; link; link = next_link(py, link))
        if (++length == TRACEBACK_MAX) {
            let_go(py, link);
            break;
        }
    return length;
}

static void put_link(python py, void *link, struct gos_stack *stack)
{
    void *frame = attribute(py, link, "tb_frame");
    void *position = attribute(py, link, "tb_lasti");

    put_frame(py, frame, position, stack);
    let_go(py, position);
    let_go(py, frame);
}

static void turn_round(struct gos_stack *stack)
{
    for (uint32_t i = 0; i < stack->python_count / 2; i++) {
        struct gos_python_ref ref = stack->python[i];

        stack->python[i] = stack->python[stack->python_count - 1 - i];
        stack->python[stack->python_count - 1 - i] = ref;
    }
}

/* A traceback is written outermost first, a stack newest first. */
static void put_traceback(python py, void *traceback, struct gos_stack *stack)
{
    uint32_t length = length_of(py, traceback);
    uint32_t at = 0;

    void *link = traceback;

    py->Py_IncRef(link);
    for (; link && at < length; link = next_link(py, link))
        if (++at + GOS_FRAME_MAX > length)
            put_link(py, link, stack);
    let_go(py, link);
    turn_round(stack);
}

/* A traceback begins where the exception is handled: what called that comes behind. */
static void put_callers(python py, void *traceback, struct gos_stack *stack)
{
    void *inner = attribute(py, traceback, "tb_frame");

    while (inner && stack->python_count < GOS_FRAME_MAX) {
        void *frame = attribute(py, inner, "f_back");
        void *position = attribute(py, frame, "f_lasti");
        bool is_frame = position && put_frame(py, frame, position, stack);

        let_go(py, position);
        let_go(py, inner);
        inner = frame;
        if (!is_frame)
            break;
    }
    let_go(py, inner);
}

static uint32_t site_of(python py, void *exception)
{
    struct gos_stack stack = {.native_count = 0};
    void *traceback = py->PyException_GetTraceback(exception);

    if (!traceback)
        return 0;
    put_traceback(py, traceback, &stack);
    put_callers(py, traceback, &stack);
    uint32_t site = gos_site_intern(&stack);
    let_go(py, traceback);
    return site;
}

/* --- what ----------------------------------------------------------------------------------- */

/* FNV-1a, begun with where it lies: an address may come again, hardly with the same words. */
static uint64_t mark_of(const void *exception, const char *message)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uintptr_t)exception;

    for (; *message; message++)
        hash = (hash ^ (unsigned char)*message) * 0x100000001b3u;
    return hash;
}

static bool ends_for_itself(const char *type)
{
    return strcmp(type, "KeyboardInterrupt") == 0 || strcmp(type, "SystemExit") == 0 ||
           strcmp(type, "GeneratorExit") == 0;
}

static bool may_refuse(const char *type)
{
    return strstr(type, "RuntimeError") || strstr(type, "OutOfMemoryError");
}

static bool refuses(python py, void *exception, void *class, const char *type,
                    struct gos_python_refusal *refusal)
{
    char module[NAME_BYTES];
    char message[MESSAGE_BYTES];

    copy_string(py, attribute(py, class, "__module__"), module, sizeof module);
    copy_string(py, py->PyObject_Str(exception), message, sizeof message);
    if (!gos_refusal_words(type, module, message, &refusal->words))
        return false;
    refusal->mark = mark_of(exception, message);
    refusal->site = site_of(py, exception);
    return true;
}

/* Takes the reference; what it was raised from, or NULL. */
static void *raised_from(python py, void *exception)
{
    void *from = py->PyException_GetCause(exception);

    if (!from)
        from = py->PyException_GetContext(exception);
    let_go(py, exception);
    return from;
}

bool gos_python_exception_refuses(python py, void *exception, struct gos_python_refusal *refusal)
{
    bool found = false;

    py->Py_IncRef(exception);
    for (unsigned i = 0; exception && !found && i < CHAIN_MAX; i++) {
        char type[NAME_BYTES];
        void *class = py->PyObject_Type(exception);

        copy_string(py, attribute(py, class, "__name__"), type, sizeof type);
        found = may_refuse(type) && refuses(py, exception, class, type, refusal);
        let_go(py, class);
        if (ends_for_itself(type))
            break;
        if (!found)
            exception = raised_from(py, exception);
    }
    let_go(py, exception);
    return found;
}
