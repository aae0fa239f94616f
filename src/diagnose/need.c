#include "need.h"

#include <string.h>

#include "saturate.h"
#include "setting.h"
#include "wording.h"

/* No call tells it; sizes as seen on an H200 [driver 580]. */
static const char context_words[] = "a context";
static const char kernel_words[] = "code of a kernel that is loaded when it is first asked for";
enum advice { NONE, CODE, OBJECT };
/* clang-format off */
static const struct {
    const char *prefix; /* of the entry point; the first that fits counts */
    const char *what;
    const char *size; /* NULL: not known */
    enum advice advice;
} groups[] = {
    {"cuCtxCreate", context_words, "some hundred MiB", NONE},
    {"cuDevicePrimaryCtxRetain", context_words, "some hundred MiB", NONE},
    {"cuGreenCtxCreate", "a green context, and the device's own if it is the first",
     "up to some hundred MiB", NONE},
    {"cuGreenCtxStreamCreate", "a stream", "some MiB at most", OBJECT},
    {"cuStreamCreate", "a stream", "some MiB at most", OBJECT},
    {"cuEventCreate", "an event", "some MiB at most, of which many are made", OBJECT},
    {"cuIpc", "an object to share with other processes", NULL, NONE},
    {"cuGraphLaunch", "memory nodes of the graph, or its kernels", NULL, NONE},
    {"cuGraph", "a graph's kernels and their parameters", "some MiB for thousands of nodes",
     OBJECT},
    {"cuLaunch", "code of a kernel that is loaded at its first launch, or local memory for it",
     NULL, CODE},
    {"cuModuleLoad", "the module's code and variables", NULL, CODE},
    {"cuModule", kernel_words, NULL, CODE},
    {"cuLibraryLoad", "the library's code and variables", NULL, CODE},
    {"cuLibrary", kernel_words, NULL, CODE},
    {"cuKernel", kernel_words, NULL, CODE},
    {"cuFunc", kernel_words, NULL, CODE},
    {"cuOccupancy", kernel_words, NULL, CODE},
    {"cuCtxEnablePeerAccess", "page tables for the other device's memory", "some MiB", NONE},
    {"cuMemSetAccess", "page tables of the mapping", "some MiB", NONE},
    {"cuMemPoolSetAccess", "page tables of the pool", "some MiB", NONE},
    {"cuTexObject", "a texture", "some MiB at most", OBJECT},
    {"cuSurfObject", "a surface", "some MiB at most", OBJECT},
};
/* clang-format on */
#define GROUP_COUNT (sizeof groups / sizeof groups[0])

static size_t group_of(const struct gos_request *request)
{
    size_t i = 0;

    while (i < GROUP_COUNT &&
           strncmp(groups[i].prefix, request->entry, strlen(groups[i].prefix)) != 0)
        i++;
    return i;
}

bool gos_need_is_context(const struct gos_request *request)
{
    size_t group = request->entry ? group_of(request) : GROUP_COUNT;

    return group < GROUP_COUNT && groups[group].what == context_words;
}

/* What each of this process' contexts there takes, with its modules; 0: not known. */
static uint64_t context_bytes(const struct gos_evidence *evidence,
                              const struct gos_diagnosis *diagnosis)
{
    int ordinal = diagnosis->device;

    if (ordinal < 0 || !evidence->devices[ordinal].own_bytes_known ||
        !evidence->devices[ordinal].context_count || !diagnosis->ledgers[ordinal].known)
        return 0;
    return (uint64_t)diagnosis->ledgers[ordinal].lines[GOS_LEDGER_CONTEXT].bytes /
           evidence->devices[ordinal].context_count;
}

static const char *context_size(struct gos_evidence *evidence,
                                const struct gos_diagnosis *diagnosis)
{
    uint64_t bytes = context_bytes(evidence, diagnosis);
    uint32_t count = bytes ? evidence->devices[diagnosis->device].context_count : 0;

    if (!bytes)
        return NULL;
    return gos_wording(evidence, "about %s, as %s with its modules",
                       gos_wording_bytes(evidence, bytes),
                       count == 1 ? "the one here takes"
                                  : gos_wording(evidence, "each of the %u here takes", count));
}

static const char *group_words(struct gos_evidence *evidence, const struct gos_diagnosis *diagnosis)
{
    size_t group = group_of(&evidence->request);
    const char *size = NULL;

    if (group == GROUP_COUNT)
        return NULL;
    if (groups[group].what == context_words)
        size = context_size(evidence, diagnosis);
    if (!size)
        size = groups[group].size ? groups[group].size : "its size is not known";
    return gos_wording(evidence, "%s (%s)", groups[group].what, size);
}

/* "stacks of kernels (CU_LIMIT_STACK_SIZE): 64.0 KiB for each of 270336 threads, 16.5 GiB". */
static const char *told_words(struct gos_evidence *evidence, uint64_t all_bytes)
{
    const struct gos_need *need = &evidence->request.need;
    const char *bytes = gos_wording_bytes(evidence, need->bytes);

    if (!need->bytes)
        return gos_wording(evidence, "%s: its size is not known", need->what);
    if (need->count <= 1)
        return gos_wording(evidence, "%s: %s", need->what, bytes);
    return gos_wording(evidence, "%s: %s for each of %llu threads, up to %s", need->what, bytes,
                       (unsigned long long)need->count, gos_wording_bytes(evidence, all_bytes));
}

void gos_need_make(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis)
{
    const struct gos_request *request = &evidence->request;
    const struct gos_need *need = &request->need;

    if (!request->api || !request->entry || request->kind != GOS_KIND_NONE || request->result != 2)
        return;
    if (!need->what) {
        diagnosis->need.words = group_words(evidence, diagnosis);
        return;
    }
    diagnosis->need.bytes = need->count > 1 ? gos_times(need->bytes, need->count) : need->bytes;
    diagnosis->need.is_most = need->count > 1;
    diagnosis->need.words = told_words(evidence, diagnosis->need.bytes);
}

static const char *advice_of_group(const struct gos_evidence *evidence)
{
    size_t group = group_of(&evidence->request);
    enum advice advice = group < GROUP_COUNT ? groups[group].advice : NONE;

    if (advice == OBJECT)
        return "Make streams, events and graphs once and use them again: made anew each time, they "
               "fill the device.";
    if (advice == CODE && !gos_setting_is(evidence, "CUDA_MODULE_LOADING", "EAGER"))
        return "Load kernels before the memory is full: run the work once at the start, or set "
               "CUDA_MODULE_LOADING=EAGER.";
    return NULL;
}

const char *gos_need_advice(const struct gos_evidence *evidence)
{
    const struct gos_request *request = &evidence->request;

    if (request->kind != GOS_KIND_NONE || !request->entry)
        return NULL;
    if (!request->need.what)
        return advice_of_group(evidence);
    return strcmp(request->entry, "cuCtxSetLimit") == 0
               ? "Set a lower limit (cudaDeviceSetLimit, cuCtxSetLimit), or set it before memory "
                 "is "
                 "allocated."
               : "Give the kernel less local memory (arrays of its threads, spilled registers: "
                 "nvcc -Xptxas -v shows them), or launch it once before the memory is full.";
}
