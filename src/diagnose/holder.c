#include "holder.h"

#include <string.h>

#include "../base/cxx_name.h"
#include "../base/module.h"
#include "../base/text.h"
#include "../track/site.h"
#include "code_place.h"
#include "library.h"
#include "saturate.h"
#include "wording.h"

#define NAME_MAX_COUNT 48
#define WORDS_BYTES 320

/* So many of the largest sites may stand beside it in a report. */
#define COMPARED_USES 6

struct tally {
    struct {
        const char *name;
        uint64_t bytes;
        uint64_t count;
        uint64_t managed_bytes;
    } rows[NAME_MAX_COUNT];
    size_t count;
};

static uint32_t requester_index(const struct gos_site *site)
{
    uint32_t module = gos_site_requester_module(site);
    for (uint32_t i = 0; i < site->native_count; i++)
        if (module != UINT32_MAX && site->native[i].module == module)
            return i;
    return 0;
}

/* The interpreter says nothing about who asked; the package of the newest frame may. */
static const char *python_package(const struct gos_site *site)
{
    if (site->python_count == 0 || !strstr(site->python[0].file, "-packages/"))
        return "python";
    const char *name = gos_library_name(site->python[0].file);
    size_t length = strlen(name);
    bool is_file = length > 3 && strcmp(name + length - 3, ".py") == 0;
    return is_file ? "python" : name;
}

static const char *name_of_frames(const struct gos_site *site)
{
    for (uint32_t i = requester_index(site); i < site->native_count; i++) {
        const struct gos_module *module = gos_module_at(site->native[i].module);
        if (!module || !module->path || gos_library_is_bridge(module->path))
            continue;
        const char *name = gos_library_name(module->path);
        return strcmp(name, "python") == 0 ? python_package(site) : name;
    }
    return site->python_count ? python_package(site) : "";
}

const char *gos_holder_of_site(uint32_t id)
{
    const struct gos_site *site = gos_site_get(id);
    return site ? name_of_frames(site) : "";
}

const char *gos_holder_of_request(const struct gos_request *request)
{
    if (request->is_word)
        return request->api;
    const char *name = gos_holder_of_site(request->site);
    if (name[0] || request->requester_module == UINT32_MAX)
        return name;
    const struct gos_module *module = gos_module_at(request->requester_module);
    return module ? gos_library_name(module->path) : "";
}

static void put_native(struct gos_text *text, const struct gos_site *site)
{
    uint32_t i = requester_index(site);
    const struct gos_module *module =
        i < site->native_count ? gos_module_at(site->native[i].module) : NULL;
    const char *symbol = module ? gos_module_nearest(module, site->native[i].address, NULL) : NULL;
    if (symbol) {
        gos_text_format(text, "%s ", module->name);
        gos_cxx_name_put(text, symbol);
    } else if (module)
        gos_text_format(text, "%s+0x%llx", module->name,
                        (unsigned long long)site->native[i].offset);
}

static void put_site(char words[WORDS_BYTES], uint32_t id, unsigned limit)
{
    struct gos_text text = gos_text_on(words, WORDS_BYTES);
    const struct gos_site *site = gos_site_get(id);
    if (!site)
        return;
    if (site->python_count)
        gos_code_put_python(&text, site->python, site->python_count, limit);
    else
        put_native(&text, site);
    gos_code_put_tag(&text, site->tag);
}

static bool reads_as(const char words[WORDS_BYTES], uint32_t other, unsigned limit)
{
    char others[WORDS_BYTES] = "";
    put_site(others, other, limit);
    return words[0] && strcmp(words, others) == 0;
}

/* Would a reader take it for the failing call's, or for one of the other large sites? */
static bool is_ambiguous(const struct gos_evidence *evidence, uint32_t id, unsigned limit)
{
    char words[WORDS_BYTES] = "";
    put_site(words, id, limit);
    if (evidence->request.site != id && reads_as(words, evidence->request.site, limit))
        return true;
    for (size_t i = 0; i < evidence->use_count && i < COMPARED_USES; i++)
        if (evidence->uses[i].site != id && reads_as(words, evidence->uses[i].site, limit))
            return true;
    return false;
}

const char *gos_holder_line_words(struct gos_evidence *evidence, uint32_t id, unsigned lines)
{
    char words[WORDS_BYTES] = "";
    put_site(words, id, lines);
    return words[0] ? gos_wording(evidence, "%s", words) : "";
}

const char *gos_holder_site_words(struct gos_evidence *evidence, uint32_t id)
{
    unsigned limit = 1;
    while (limit < GOS_CODE_LINES_MAX && is_ambiguous(evidence, id, limit))
        limit++;
    return gos_holder_line_words(evidence, id, limit);
}

const char *gos_holder_use_words(struct gos_evidence *evidence, const struct gos_site_use *use)
{
    const char *bytes = gos_wording_bytes(evidence, gos_site_use_bytes(use));
    if (use->is_estimated)
        return gos_wording(evidence, "about %s", bytes);
    return gos_wording(evidence, "%s in %s%s", bytes,
                       gos_wording_count(evidence, use->live_count, "allocation"),
                       use->kind == GOS_KIND_MANAGED ? " of managed memory" : "");
}

/* Is a record of this kind memory that somebody keeps on that device (or of the host)? */
static bool counts_for(const struct gos_site_use *use, uint32_t device)
{
    if (use->device != device)
        return false;
    if (device == GOS_DEVICE_HOST)
        return use->kind == GOS_KIND_HOST || use->kind == GOS_KIND_REGISTERED;
    return gos_kind_on_device_books(use->kind) || use->kind == GOS_KIND_POOL ||
           use->kind == GOS_KIND_MANAGED;
}

static bool shows_who_asked(uint32_t id)
{
    const struct gos_site *site = gos_site_get(id);
    return site && gos_site_requester_module(site) != UINT32_MAX;
}

static void tally_add(struct tally *tally, const char *name, const struct gos_site_use *use)
{
    size_t i = 0;
    while (i < tally->count && strcmp(tally->rows[i].name, name) != 0)
        i++;
    if (i == tally->count) {
        if (tally->count == NAME_MAX_COUNT)
            return;
        tally->rows[tally->count++].name = name;
    }
    tally->rows[i].bytes = gos_plus(tally->rows[i].bytes, gos_site_use_bytes(use));
    if (use->kind == GOS_KIND_MANAGED)
        tally->rows[i].managed_bytes =
            gos_plus(tally->rows[i].managed_bytes, gos_site_use_bytes(use));
    tally->rows[i].count = gos_plus(tally->rows[i].count, use->live_count);
}

/* The largest row that was not handed out yet; its name is cleared by the caller. */
static size_t largest_row(const struct tally *tally)
{
    size_t best = NAME_MAX_COUNT;
    for (size_t i = 0; i < tally->count; i++)
        if (tally->rows[i].name &&
            (best == NAME_MAX_COUNT || tally->rows[i].bytes > tally->rows[best].bytes))
            best = i;
    return best;
}

static void hand_out(struct tally *tally, struct gos_diagnosis *diagnosis)
{
    size_t room = sizeof(diagnosis->holders) / sizeof(diagnosis->holders[0]);
    diagnosis->holder_count = 0;
    for (size_t i = largest_row(tally); i < NAME_MAX_COUNT && diagnosis->holder_count < room;
         i = largest_row(tally)) {
        size_t to = diagnosis->holder_count++;
        diagnosis->holders[to].name = tally->rows[i].name;
        diagnosis->holders[to].live_bytes = tally->rows[i].bytes;
        diagnosis->holders[to].live_count = tally->rows[i].count;
        diagnosis->holders[to].managed_bytes = tally->rows[i].managed_bytes;
        tally->rows[i].name = NULL;
    }
}

void gos_holders_make(const struct gos_evidence *evidence, uint32_t device,
                      struct gos_diagnosis *diagnosis)
{
    struct tally tally = {.count = 0};
    diagnosis->unseen_bytes = 0;
    for (size_t i = 0; i < evidence->use_count; i++) {
        const struct gos_site_use *use = &evidence->uses[i];
        if (!counts_for(use, device) || gos_site_use_bytes(use) == 0)
            continue;
        tally_add(&tally, gos_holder_of_site(use->site), use);
        if (!shows_who_asked(use->site))
            diagnosis->unseen_bytes = gos_plus(diagnosis->unseen_bytes, gos_site_use_bytes(use));
    }
    hand_out(&tally, diagnosis);
}

const struct gos_site_use *gos_holder_top_use(const struct gos_evidence *evidence, uint32_t device)
{
    const struct gos_site_use *top = NULL;
    for (size_t i = 0; i < evidence->use_count; i++) {
        const struct gos_site_use *use = &evidence->uses[i];
        if (counts_for(use, device) && (!top || gos_site_use_bytes(use) > gos_site_use_bytes(top)))
            top = use;
    }
    return top;
}
