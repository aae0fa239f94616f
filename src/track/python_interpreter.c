#include "python_interpreter.h"

#include <string.h>

#include "../base/hot.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/phdr_walk.h"
#include "unwinder.h"

/* Captures of a thread from one search to the next. */
#define SEARCH_EVERY 64

static struct gos_interpreter found; /* being filled */
static struct gos_interpreter *adopted;
GOS_READ_MOSTLY _Atomic(const struct gos_interpreter *) gos_python_adopted;
static _Atomic(gos_python_question *) asleep; /* of one that is loaded and not initialised */
static _Atomic uint32_t unloading_count;      /* threads that may be unloading one just now */
static _Atomic(const char *) unsupported;
static atomic_flag searching = ATOMIC_FLAG_INIT;
static _Atomic uint64_t searched_loads;
static _Atomic uint64_t searched_generation;
static __thread uint32_t captures_without __attribute__((tls_model("initial-exec")));

static int note_loads(struct dl_phdr_info *info, size_t bytes, void *loads)
{
    (void)bytes;
    *(uint64_t *)loads = info->dlpi_adds;
    return 1;
}

/*
 * How many objects the loader has loaded so far: a search finds nothing new until it grows.
 * A forked child cannot count, and searches those that its parent knew.
 */
static uint64_t count_loads(void)
{
    uint64_t loads = UINT64_MAX;
    gos_phdr_walk(note_loads, &loads);
    return loads;
}

/*
 * An executable with an interpreter inside may also load a libpython that
 * nobody uses: only one that was initialised counts.
 */
static bool holds_interpreter(const struct gos_module *module, void *sleeping)
{
    if (!gos_module_symbol(module, "PyCode_Type"))
        return false;
    gos_python_question *is_initialized =
        (gos_python_question *)gos_module_symbol(module, "Py_IsInitialized");
    if (!is_initialized)
        return false;
    if (is_initialized())
        return true;
    *(gos_python_question **)sleeping = is_initialized;
    return false;
}

static uint32_t parse_number(const char **text)
{
    uint32_t number = 0;
    for (; **text >= '0' && **text <= '9'; (*text)++)
        number = number * 10 + (uint32_t)(**text - '0');
    return number;
}

/* "3.10.13 (main, …" as PY_VERSION_HEX writes it, without the release level. */
static uint32_t parse_version(const char *text)
{
    uint32_t major = parse_number(&text);
    text += *text == '.';
    uint32_t minor = parse_number(&text);
    text += *text == '.';
    return major << 24 | minor << 16 | parse_number(&text) << 8;
}

/* Py_Version exists from 3.11 on; older ones tell only in words. */
static uint32_t version_of(const struct gos_module *module, const char *words)
{
    uintptr_t number = gos_module_symbol(module, "Py_Version");
    return number ? *(const uint32_t *)number : parse_version(words);
}

static void give_up(const char *why)
{
    atomic_store_explicit(&unsupported, why, memory_order_release);
}

/* Each stays where it is: a thread may be reading it although it was replaced. */
static bool publish(const struct gos_interpreter *filled)
{
    struct gos_interpreter *kept = adopted;
    while (kept && kept->module != filled->module)
        kept = kept->next;
    if (!kept) {
        kept = gos_arena_alloc(sizeof *kept);
        if (!kept)
            return false;
        *kept = *filled;
        kept->next = adopted;
        adopted = kept;
    }
    atomic_store_explicit(&gos_python_adopted, kept, memory_order_release);
    return true;
}

static bool adopt(const struct gos_module *module)
{
    uintptr_t thread_state = gos_module_symbol(module, "PyGILState_GetThisThreadState");
    uintptr_t get_version = gos_module_symbol(module, "Py_GetVersion");
    if (!thread_state || !get_version) {
        give_up("the Python interpreter does not export what is needed");
        return false;
    }
    const char *words = ((const char *(*)(void))get_version)();
    uint32_t version = version_of(module, words);
    const void *runtime = (const void *)gos_module_symbol(module, "_PyRuntime");
    const char *why = gos_python_layout_find(version, runtime, &found.layout);
    if (!why && strstr(words, "free-threading") && !found.layout.is_free_threaded)
        why = GOS_PYTHON_FREE_THREADED;
    if (why) {
        give_up(why);
        return false;
    }
    found.thread_state = (void *(*)(void))thread_state;
    found.code_type = gos_module_symbol(module, "PyCode_Type");
    found.version = gos_arena_intern(words, strcspn(words, " "));
    found.module = module;
    found.is_initialized = (gos_python_question *)gos_module_symbol(module, "Py_IsInitialized");
    return found.is_initialized && publish(&found);
}

/* One thread at a time. */
static bool search_modules(uint64_t loads)
{
    gos_python_question *sleeping = NULL;
    const struct gos_module *module = gos_module_search(holds_interpreter, &sleeping);
    bool is_found = module && adopt(module);
    /* An interpreter that is not initialised yet can wake up without anything being loaded. */
    atomic_store_explicit(&asleep, module ? NULL : sleeping, memory_order_release);
    atomic_store_explicit(&searched_loads, sleeping ? 0 : loads, memory_order_relaxed);
    return is_found;
}

static bool is_found(void)
{
    return gos_python_known() != NULL;
}

bool gos_python_find(void)
{
    if (is_found())
        return true;
    if (gos_python_unsupported() || atomic_load(&unloading_count))
        return false;
    atomic_store_explicit(&searched_generation, gos_module_generation(), memory_order_relaxed);
    uint64_t loads = count_loads();
    if (loads == atomic_load_explicit(&searched_loads, memory_order_relaxed))
        return false;
    if (atomic_flag_test_and_set_explicit(&searching, memory_order_acquire))
        return false;
    bool result = is_found() || search_modules(loads);
    atomic_flag_clear_explicit(&searching, memory_order_release);
    return result;
}

/*
 * A library that comes is seen when its code is on a stack.  Where no native
 * stacks are taken, the loader has to be asked, now and then.
 */
static bool has_come(void)
{
    uint64_t searched = atomic_load_explicit(&searched_generation, memory_order_relaxed);
    bool sees_code =
        gos_options.stack != GOS_STACK_PYTHON && gos_unwinder_which() != GOS_UNWINDER_NONE;
    return gos_module_generation() != searched ||
           (!sees_code && captures_without++ % SEARCH_EVERY == 0);
}

static bool is_search_due(void)
{
    gos_python_question *is_awake = atomic_load_explicit(&asleep, memory_order_acquire);
    return (is_awake && is_awake()) || has_come();
}

const struct gos_interpreter *gos_python_look(void)
{
    if (is_search_due())
        gos_python_find();
    return gos_python_known();
}

/* --- libraries that go ---------------------------------------------------------------------- */

static void forget(void)
{
    atomic_store_explicit(&gos_python_adopted, NULL, memory_order_release);
    atomic_store_explicit(&searched_loads, 0, memory_order_relaxed);
    atomic_store_explicit(&searched_generation, 0, memory_order_relaxed);
}

/* An interpreter at its end is forgotten before it can go: other threads would call into it. */
void gos_python_unload_begin(void)
{
    const struct gos_interpreter *python = gos_python_known();
    atomic_fetch_add(&unloading_count, 1);
    if (atomic_exchange(&asleep, NULL) || (python && !python->is_initialized()))
        forget();
}

/* And one that the host unloads without having ended it, as soon as it can be seen. */
void gos_python_unload_end(void)
{
    const struct gos_interpreter *python = gos_python_known();
    if (python && !gos_module_is_loaded(python->module))
        forget();
    atomic_fetch_sub(&unloading_count, 1);
}

const char *gos_python_version(void)
{
    const struct gos_interpreter *python = gos_python_known();
    return python ? python->version : NULL;
}

const char *gos_python_unsupported(void)
{
    return atomic_load_explicit(&unsupported, memory_order_acquire);
}

/* The texts were in memory that the child has forgotten; the interpreter is found again. */
void gos_python_reset_after_fork(void)
{
    atomic_store(&gos_python_adopted, NULL);
    atomic_store(&unsupported, NULL);
    atomic_store(&asleep, NULL);
    atomic_store(&unloading_count, 0);
    atomic_store(&searched_loads, 0);
    atomic_store(&searched_generation, 0);
    adopted = NULL;
    atomic_flag_clear(&searching);
    captures_without = 0;
}
