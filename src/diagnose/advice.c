#include "advice.h"

#include <string.h>

#include "holder.h"
#include "setting.h"
#include "wording.h"

/* "PYTORCH_CUDA_ALLOC_CONF=key:value", or how to add it to what is there. */
static const char *torch_item(const struct gos_situation *s, const char *item)
{
    const char *name = gos_setting_torch_name(s->evidence);
    const char *late = gos_setting_late(s->evidence, name);
    if (late)
        return gos_wording(s->evidence,
                           "Set %s before CUDA is first used: %s came too late to be read (and "
                           "let it have %s).",
                           name, late, item);
    if (gos_setting_get(s->evidence, name))
        return gos_wording(s->evidence, "Add %s to %s.", item, name);
    return gos_wording(s->evidence, "Set %s=%s.", name, item);
}

static bool is_set(const struct gos_situation *s, const char *name)
{
    return gos_setting_get(s->evidence, name) != NULL;
}

static enum gos_setting_state limit_of(const struct gos_situation *s, const char *library)
{
    const struct gos_framework_evidence *framework = gos_framework_word(s, library);
    return framework ? framework->limited : GOS_SETTING_UNKNOWN;
}

/* torch heeds its threshold only where it has a limit. */
static void advise_torch_threshold(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const char *limit = limit_of(s, "torch") == GOS_SETTING_ON
                            ? ""
                            : " It works together with a limit: "
                              "torch.cuda.set_per_process_memory_fraction(0.95).";
    gos_verdict_advise(
        verdict,
        gos_wording(s->evidence, "%s%s", torch_item(s, "garbage_collection_threshold:0.8"), limit));
}

static void advise_torch(const struct gos_situation *s, struct gos_verdict *verdict)
{
    gos_verdict_advise(
        verdict,
        gos_wording(s->evidence, "Call torch.cuda.empty_cache() before %s needs the memory.",
                    strcmp(s->requester, "torch") == 0 ? "this point"
                                                       : gos_situation_requester(s)));
    gos_verdict_advise(verdict,
                       limit_of(s, "torch") == GOS_SETTING_ON
                           ? "Keep a larger margin for the others: lower what is given to "
                             "torch.cuda.set_per_process_memory_fraction."
                           : "Keep a margin: torch.cuda.set_per_process_memory_fraction(0.95).");
    if (!gos_setting_torch_collects(s->evidence))
        advise_torch_threshold(s, verdict);
}

static void advise_cupy(const struct gos_situation *s, struct gos_verdict *verdict)
{
    gos_verdict_advise(verdict, "Call cupy.get_default_memory_pool().free_all_blocks() first.");
    if (is_set(s, "CUPY_GPU_MEMORY_LIMIT") || limit_of(s, "cupy") == GOS_SETTING_ON)
        gos_verdict_advise(verdict, "Lower the limit of its pool.");
    else
        gos_verdict_advise(verdict, "Limit its pool: CUPY_GPU_MEMORY_LIMIT=80%.");
}

/* JAX does not start when both names are set; every version knows the older one. */
static void advise_jax_share(const struct gos_situation *s, struct gos_verdict *verdict)
{
    static const char *const names[] = {"XLA_CLIENT_MEM_FRACTION",
                                        "XLA_PYTHON_CLIENT_MEM_FRACTION"};
    for (size_t i = 0; i < 2; i++) {
        bool late = gos_setting_late(s->evidence, names[i]) != NULL;
        if (!late && !is_set(s, names[i]))
            continue;
        gos_verdict_advise(verdict, gos_wording(s->evidence,
                                                late ? "Set %s before CUDA is first used: it came "
                                                       "too late to be read."
                                                     : "Lower %s.",
                                                names[i]));
        return;
    }
    gos_verdict_advise(verdict, "Give it a share: XLA_PYTHON_CLIENT_MEM_FRACTION=0.6.");
}

static void advise_jax(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!gos_setting_is_off(s->evidence, "XLA_PYTHON_CLIENT_PREALLOCATE"))
        gos_verdict_advise(verdict, "Do not let JAX take the device in advance: "
                                    "XLA_PYTHON_CLIENT_PREALLOCATE=false.");
    advise_jax_share(s, verdict);
}

static void advise_tensorflow(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!gos_setting_is_on(s->evidence, "TF_FORCE_GPU_ALLOW_GROWTH"))
        gos_verdict_advise(verdict, "Do not let TensorFlow take the device in advance: "
                                    "TF_FORCE_GPU_ALLOW_GROWTH=true.");
    gos_verdict_advise(verdict, "Give it a share: "
                                "tf.config.set_logical_device_configuration(memory_limit=...).");
}

void gos_advise_cache(const struct gos_situation *s, struct gos_verdict *verdict,
                      const char *library)
{
    if (strcmp(library, "torch") == 0)
        advise_torch(s, verdict);
    else if (strcmp(library, "cupy") == 0)
        advise_cupy(s, verdict);
    else if (strcmp(library, "jax") == 0)
        advise_jax(s, verdict);
    else if (strcmp(library, "tensorflow") == 0)
        advise_tensorflow(s, verdict);
    else if (strcmp(library, "onnxruntime") == 0)
        gos_verdict_advise(verdict, "Set gpu_mem_limit and "
                                    "arena_extend_strategy=kSameAsRequested in the CUDA provider.");
    else if (strcmp(library, "rmm") == 0)
        gos_verdict_advise(verdict, "Give RMM's pool a maximum_pool_size that leaves room.");
    else
        gos_verdict_advise(
            verdict, gos_wording(s->evidence, "Make %s keep less, or give it a limit.", library));
}

/* One step at a time: the next is named only when the one before it is already on. */
void gos_advise_torch_pieces(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (!gos_setting_torch_expandable(s->evidence))
        gos_verdict_advise(verdict, torch_item(s, "expandable_segments:True"));
    else if (!gos_setting_torch_collects(s->evidence))
        advise_torch_threshold(s, verdict);
    else if (limit_of(s, "torch") == GOS_SETTING_OFF)
        gos_verdict_advise(verdict, "Call torch.cuda.set_per_process_memory_fraction(0.95): "
                                    "without a limit torch does not heed its threshold.");
    else
        gos_verdict_advise(verdict, "See what its segments hold: torch.cuda.memory_summary().");
}

/* Expandable segments have no use for a largest size to split. */
void gos_advise_torch_whole(const struct gos_situation *s, struct gos_verdict *verdict)
{
    bool expandable = gos_setting_torch_expandable(s->evidence);
    if (!expandable)
        gos_verdict_advise(verdict, torch_item(s, "expandable_segments:True"));
    if (!expandable && !gos_setting_torch_splits_are_limited(s->evidence))
        gos_verdict_advise(verdict, torch_item(s, "max_split_size_mb:128"));
    gos_verdict_advise(verdict, "Allocate the large tensors first, before small ones that live "
                                "long.");
    if (!gos_tried_asked(s->diagnosis, "torch"))
        gos_verdict_advise(verdict, "Call torch.cuda.empty_cache() between phases, so that small "
                                    "tensors do not settle in large idle segments.");
}

void gos_advise_context(const struct gos_situation *s, struct gos_verdict *verdict)
{
    if (gos_setting_is(s->evidence, "CUDA_MODULE_LOADING", "EAGER"))
        gos_verdict_advise(verdict, "Load kernels when they are used: CUDA_MODULE_LOADING is "
                                    "EAGER.");
    if (s->device->context_count > 1)
        gos_verdict_advise(verdict, gos_wording(s->evidence,
                                                "Share one context (cudaSetDevice takes the "
                                                "primary one): this process has %u.",
                                                s->device->context_count));
    gos_verdict_advise(verdict, "Look for what takes memory without an allocation: large "
                                "__device__ arrays, cudaDeviceSetLimit (heap, stack, printf "
                                "buffer of kernels), libraries that load many kernels.");
}

static void advise_top_site(const struct gos_situation *s, struct gos_verdict *verdict)
{
    const struct gos_site_use *top =
        gos_holder_top_use(s->evidence, (uint32_t)s->diagnosis->device);
    /* A framework's own lines are known better than those that made its arena grow. */
    bool is_told = s->request->is_word && s->evidence->framework_line_count > 0;
    const char *words = top && !is_told ? gos_holder_site_words(s->evidence, top->site) : "";
    if (words[0])
        gos_verdict_advise(verdict, gos_wording(s->evidence, "Begin with %s: %s.", words,
                                                gos_holder_use_words(s->evidence, top)));
}

void gos_advise_less(const struct gos_situation *s, struct gos_verdict *verdict)
{
    advise_top_site(s, verdict);
    gos_verdict_advise_growth(s, verdict);
    gos_verdict_advise(verdict, "Make the work smaller: batch size, sequence length, lower "
                                "precision, activation checkpointing.");
    gos_verdict_advise(verdict, "Or spread it: shard over more devices, offload to the host.");
}
