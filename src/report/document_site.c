/* Who holds the memory: stacks, sites, and the libraries that they belong to. */
#include "document.h"

#include <string.h>

#include "../base/cxx_name.h"
#include "../base/text.h"

#define TEXT_SITES 20
#define TEXT_FRAMES 12
#define TEXT_OUTERMOST 3 /* of these, where there are more */
#define JSON_SITES 4000
#define BRIEF_SITES 32

/* --- stacks --- */

static void emit_python_json(const struct gos_shown_stack *stack, struct gos_emitter *emitter)
{
    gos_emitter_array(emitter, "python");
    for (uint32_t i = 0; i < stack->python_count; i++) {
        const struct gos_python_frame *frame = &stack->python[i];
        gos_emitter_row(emitter, NULL);
        gos_emitter_string(emitter, GOS_FIELD("file", NULL), frame->file);
        gos_emitter_string(emitter, GOS_FIELD("function", NULL), frame->function);
        gos_emitter_signed(emitter, GOS_FIELD("line", NULL), frame->line);
        gos_emitter_row_end(emitter);
    }
    gos_emitter_end(emitter);
}

static void emit_frame_module(const struct gos_module *module, struct gos_emitter *emitter)
{
    gos_emitter_string(emitter, GOS_FIELD("library", NULL), module ? module->name : NULL);
    if (module)
        gos_emitter_count(emitter, GOS_FIELD("module", NULL), module->index);
}

static void emit_native_json(const struct gos_shown_stack *stack, struct gos_emitter *emitter)
{
    gos_emitter_array(emitter, "native");
    for (uint32_t i = 0; i < stack->native_count; i++) {
        const struct gos_shown_frame *frame = &stack->native[i];
        gos_emitter_row(emitter, NULL);
        emit_frame_module(frame->module, emitter);
        gos_emitter_count(emitter, GOS_FIELD("offset", NULL), frame->offset);
        if (frame->symbol) {
            gos_emitter_string(emitter, GOS_FIELD("symbol", NULL), frame->symbol);
            gos_emitter_count(emitter, GOS_FIELD("symbol_offset", NULL), frame->symbol_offset);
        }
        gos_emitter_row_end(emitter);
    }
    gos_emitter_end(emitter);
}

static void emit_stack_json(const struct gos_shown_stack *stack, struct gos_emitter *emitter)
{
    gos_emitter_object(emitter, "stack");
    gos_emitter_string(emitter, GOS_FIELD("tag", NULL), stack->tag);
    emit_python_json(stack, emitter);
    emit_native_json(stack, emitter);
    gos_emitter_end(emitter);
}

static void native_line(const struct gos_shown_frame *frame, struct gos_emitter *emitter)
{
    const char *library = frame->module ? frame->module->name : "(no library)";
    const char *name = frame->symbol;
    char buffer[512];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    if (name && name[0] == '_') { /* others may be longer */
        gos_cxx_name_put(&text, name);
        name = buffer;
    }
    if (name && frame->symbol_offset > 0)
        gos_emitter_line(emitter, "      %-24s %s+0x%llx", library, name,
                         (unsigned long long)frame->symbol_offset);
    else if (name)
        gos_emitter_line(emitter, "      %-24s %s", library, name);
    else
        gos_emitter_line(emitter, "      %-24s +0x%llx", library,
                         (unsigned long long)frame->offset);
}

static void more_line(uint32_t count, struct gos_emitter *emitter)
{
    if (count > 0)
        gos_emitter_line(emitter, "      ... and %u more", count);
}

static void python_line(const struct gos_python_frame *frame, struct gos_emitter *emitter)
{
    if (frame->file && strcmp(frame->file, GOS_PYTHON_CUT) == 0)
        gos_emitter_line(emitter, "      ... frames between that were not kept");
    else
        gos_emitter_line(emitter, "      %s:%d  %s", frame->file, frame->line, frame->function);
}

static uint32_t count_python(const struct gos_shown_stack *stack, bool noise)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stack->python_count; i++)
        count += noise || !gos_python_frame_is_noise(&stack->python[i]);
    return count;
}

/* Where all are too many, the newest and the outermost. */
static void emit_python_text(const struct gos_shown_stack *stack, uint32_t limit, bool noise,
                             struct gos_emitter *emitter)
{
    uint32_t count = count_python(stack, noise);
    uint32_t newest = count > limit ? limit - TEXT_OUTERMOST : count;
    uint32_t number = 0;
    for (uint32_t i = 0; i < stack->python_count; i++) {
        if (!noise && gos_python_frame_is_noise(&stack->python[i]))
            continue;
        if (number < newest || number >= count - TEXT_OUTERMOST)
            python_line(&stack->python[i], emitter);
        else if (number == newest)
            more_line(count - newest - TEXT_OUTERMOST, emitter);
        number++;
    }
}

static void emit_native_text(const struct gos_shown_stack *stack, uint32_t limit, bool noise,
                             struct gos_emitter *emitter)
{
    uint32_t shown = 0;
    uint32_t left_out = 0;
    for (uint32_t i = 0; i < stack->native_count; i++) {
        if (!noise && gos_frame_is_noise(&stack->native[i]))
            continue;
        if (shown++ < limit)
            native_line(&stack->native[i], emitter);
        else
            left_out++;
    }
    more_line(left_out, emitter);
}

static void emit_stack_text(const struct gos_document *document,
                            const struct gos_shown_stack *stack, struct gos_emitter *emitter)
{
    uint32_t limit = document->complete ? UINT32_MAX : TEXT_FRAMES;
    if (stack->tag)
        gos_emitter_line(emitter, "    tag [%s]", stack->tag);
    if (stack->python_count > 0)
        gos_emitter_line(emitter, "    Python, newest call first");
    emit_python_text(stack, limit, document->complete, emitter);
    if (stack->native_count > 0)
        gos_emitter_line(emitter, "    native, newest call first");
    emit_native_text(stack, limit, document->complete, emitter);
}

void gos_document_stack(const struct gos_document *document, struct gos_emitter *emitter,
                        uint32_t site)
{
    static const struct gos_shown_stack unknown;
    const struct gos_shown_stack *stack = gos_stacks_find(&document->stacks, site);
    if (gos_emitter_is_text(emitter))
        emit_stack_text(document, stack ? stack : &unknown, emitter);
    else if (stack)
        emit_stack_json(stack, emitter);
    else
        gos_emitter_null(emitter, GOS_FIELD("stack", NULL));
}

/* --- modules that the frames name --- */

static void put_build_id(struct gos_text *text, const struct gos_module *module)
{
    for (uint8_t i = 0; i < module->build_id_bytes && i < sizeof module->build_id; i++)
        gos_text_format(text, "%02x", module->build_id[i]);
}

static void emit_module(const struct gos_module *module, struct gos_emitter *emitter)
{
    char build_id[2 * sizeof module->build_id + 1];
    struct gos_text text = gos_text_on(build_id, sizeof build_id);
    put_build_id(&text, module);
    if (gos_emitter_is_text(emitter)) {
        gos_emitter_line(emitter, "  %-40s  %s", text.length ? build_id : "(none)", module->path);
        return;
    }
    gos_emitter_row(emitter, NULL);
    gos_emitter_count(emitter, GOS_FIELD("module", NULL), module->index);
    gos_emitter_string(emitter, GOS_FIELD("name", NULL), module->name);
    gos_emitter_string(emitter, GOS_FIELD("path", NULL), module->path);
    gos_emitter_string(emitter, GOS_FIELD("build_id", NULL), text.length ? build_id : NULL);
    gos_emitter_row_end(emitter);
}

static void emit_modules(const struct gos_stacks *stacks, struct gos_emitter *emitter)
{
    if (stacks->module_count > 0)
        gos_emitter_heading(emitter, "BUILD IDS of what the native frames name");
    gos_emitter_array(emitter, "modules");
    for (size_t i = 0; i < stacks->module_count; i++)
        emit_module(stacks->modules[i], emitter);
    gos_emitter_end(emitter);
}

/* --- libraries --- */

static void emit_holders(const struct gos_diagnosis *diagnosis, struct gos_emitter *emitter)
{
    static const struct gos_field fields[] = {
        {"name", "library", -36},
        {"live_bytes", "live", 11},
        {"live_count", "allocations", 12},
        {"managed_bytes", "managed", 11},
    };
    if (diagnosis->holder_count > 0) {
        gos_emitter_heading(emitter, "LIBRARIES that asked for what is live");
        gos_emitter_titles(emitter, fields, sizeof fields / sizeof fields[0]);
    }
    gos_emitter_array(emitter, "holders");
    for (size_t i = 0; i < diagnosis->holder_count; i++) {
        gos_emitter_row(emitter, NULL);
        gos_emitter_string(emitter, &fields[0], diagnosis->holders[i].name);
        gos_emitter_bytes(emitter, &fields[1], diagnosis->holders[i].live_bytes);
        gos_emitter_count(emitter, &fields[2], diagnosis->holders[i].live_count);
        gos_emitter_bytes(emitter, &fields[3], diagnosis->holders[i].managed_bytes);
        gos_emitter_row_end(emitter);
    }
    gos_emitter_end(emitter);
}

/* --- sites --- */

/* Under an estimate, what has a stack is only a part of what is counted. */
static const char *count_words(const struct gos_site_use *use)
{
    if (use->is_estimated)
        return use->site ? "allocations with a stack" : "allocations without a stack";
    return use->live_count == 1 ? "allocation" : "allocations";
}

static void put_site_bytes(struct gos_text *text, const struct gos_site_use *use)
{
    bool is_about = use->is_estimated && use->site;
    gos_text_put(text, is_about ? "about " : "");
    gos_text_bytes(text, is_about ? use->estimated_bytes : use->live_bytes);
}

static void site_line(const struct gos_site_use *use, size_t number, struct gos_emitter *emitter)
{
    char bytes[32];
    char place[24];
    struct gos_text text = gos_text_on(bytes, sizeof bytes);
    struct gos_text where = gos_text_on(place, sizeof place);
    put_site_bytes(&text, use);
    if (use->device == GOS_DEVICE_HOST)
        gos_text_put(&where, "host");
    else
        gos_text_format(&where, "GPU %u", use->device);
    gos_emitter_line(emitter, "  %zu. %s in %llu %s, %s, %s", number, bytes,
                     (unsigned long long)use->live_count, count_words(use),
                     gos_kind_words(use->kind), place);
}

static void emit_use_device(const struct gos_site_use *use, struct gos_emitter *emitter)
{
    if (use->device == GOS_DEVICE_HOST)
        gos_emitter_null(emitter, GOS_FIELD("device", NULL));
    else
        gos_emitter_count(emitter, GOS_FIELD("device", NULL), use->device);
}

static void emit_use(const struct gos_document *document, size_t index, struct gos_emitter *emitter)
{
    const struct gos_site_use *use = &document->report->diagnosis->evidence->uses[index];
    site_line(use, index + 1, emitter);
    gos_emitter_object(emitter, NULL);
    gos_emitter_count(emitter, GOS_FIELD("site", NULL), use->site);
    gos_emitter_string(emitter, GOS_FIELD("kind", NULL), gos_kind_code(use->kind));
    emit_use_device(use, emitter);
    gos_emitter_bytes(emitter, GOS_FIELD("live_bytes", NULL), use->live_bytes);
    gos_emitter_count(emitter, GOS_FIELD("live_count", NULL), use->live_count);
    gos_emitter_bytes(emitter, GOS_FIELD("largest_bytes", NULL), use->largest_bytes);
    gos_emitter_count(emitter, GOS_FIELD("oldest_ms", NULL), use->oldest_ms);
    gos_emitter_count(emitter, GOS_FIELD("newest_ms", NULL), use->newest_ms);
    gos_emitter_bool(emitter, GOS_FIELD("estimated", NULL), use->is_estimated);
    if (use->is_estimated)
        gos_emitter_bytes(emitter, GOS_FIELD("estimated_live_bytes", NULL), use->estimated_bytes);
    gos_document_stack(document, emitter, use->site);
    gos_emitter_end(emitter);
}

static size_t use_limit(const struct gos_document *document, const struct gos_emitter *emitter)
{
    size_t limit = document->is_brief ? BRIEF_SITES : JSON_SITES;
    if (gos_emitter_is_text(emitter) && !document->complete)
        limit = TEXT_SITES;
    size_t count = document->report->diagnosis->evidence->use_count;
    return count < limit ? count : limit;
}

/* What the limit keeps out is summed up, so that the bytes still add up. */
static void emit_left_out(const struct gos_document *document, size_t shown,
                          struct gos_emitter *emitter)
{
    const struct gos_evidence *evidence = document->report->diagnosis->evidence;
    size_t count = evidence->use_count - shown + document->left_out.count;
    uint64_t bytes = document->left_out.live_bytes;
    for (size_t i = shown; i < evidence->use_count; i++)
        bytes += evidence->uses[i].live_bytes;
    if (gos_emitter_is_text(emitter) && count == 0)
        return;
    gos_emitter_row(emitter, "sites_left_out");
    gos_emitter_line(emitter, "  ... and %zu smaller ones", count);
    gos_emitter_count(emitter, GOS_FIELD("count", NULL), count);
    gos_emitter_bytes(emitter, GOS_FIELD("live_bytes", NULL), bytes);
    gos_emitter_row_end(emitter);
}

static void emit_sites(const struct gos_document *document, struct gos_emitter *emitter)
{
    size_t limit = use_limit(document, emitter);
    if (limit > 0)
        gos_emitter_heading(emitter, "SITES: the lines of code that hold the most");
    gos_emitter_array(emitter, "sites");
    for (size_t i = 0; i < limit; i++)
        emit_use(document, i, emitter);
    gos_emitter_end(emitter);
    emit_left_out(document, limit, emitter);
}

void gos_document_sites(const struct gos_document *document, struct gos_emitter *emitter)
{
    emit_holders(document->report->diagnosis, emitter);
    emit_sites(document, emitter);
    emit_modules(&document->stacks, emitter);
}
