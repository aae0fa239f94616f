#include "environment.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "../base/text.h"
#include "peek.h"
#include "procfs.h"
#include "secrecy.h"
#include "sort.h"

#define TEXT_BYTES 1024
#define NOT_SHOWN "(not shown)"
/* A block with more variables than this is not an environment any more. */
#define BLOCK_MAX 8192

/* A name, or with '*' at the end the beginning of one. */
static const char *const allowed[] = {
    "CUDA_*",
    "NVIDIA_*",
    "NCCL_*",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "TORCH_*",
    "XLA_*",
    "JAX_*",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_*",
    "CUPY_*",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_JOB_ID",
    "OMPI_COMM_WORLD_*",
    "GPUOOMSHIM_*",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
};

struct variable {
    const char *name;
    const char *value;
};

/* As it was at first use; published by its count. */
static struct variable first[GOS_ENVIRONMENT_MAX];
static _Atomic size_t first_count;

static bool matches(const char *pattern, const char *name, size_t length)
{
    size_t pattern_length = strlen(pattern);

    if (pattern[pattern_length - 1] != '*')
        return pattern_length == length && memcmp(pattern, name, length) == 0;
    return length >= pattern_length - 1 && memcmp(pattern, name, pattern_length - 1) == 0;
}

bool gos_environment_allows(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        if (matches(allowed[i], name, length))
            return true;
    return false;
}

/* Paths of libraries are full of hashes and versions, and are no place for a token. */
static bool is_secret(const char *name, size_t name_length, const char *value)
{
    if (gos_secrecy_name(name, name_length))
        return true;
    return strncmp(name, "LD_", 3) != 0 && gos_secrecy_value(value, strlen(value));
}

/* Split "NAME=value" in place; false when it is not for us. */
static bool admit(char *text, struct variable *variable)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || !gos_environment_allows(text, (size_t)(equals - text)))
        return false;
    variable->name = text;
    variable->value = equals + 1;
    if (is_secret(text, (size_t)(equals - text), equals + 1))
        variable->value = NOT_SHOWN;
    *equals = '\0';
    return true;
}

/*
 * Visit the process' own block as it is now.  False when memory could not be
 * copied: the kernel forbids it, or the block was replaced under our eyes.
 */
static bool each_variable(void (*visit)(const struct variable *, void *), void *arg)
{
    char text[TEXT_BYTES];
    char **block = environ;

    for (size_t i = 0; block != NULL && i < BLOCK_MAX; i++) {
        struct variable variable;
        const char *entry;

        if (!gos_peek(&block[i], &entry, sizeof(entry)))
            return false;
        if (entry == NULL)
            return true;
        if (!gos_peek_text(entry, text, sizeof(text)))
            return false;
        if (admit(text, &variable))
            visit(&variable, arg);
    }
    return block == NULL;
}

static void keep_first(const struct variable *variable, void *arg)
{
    size_t *count = arg;
    struct variable kept = {gos_arena_intern(variable->name, strlen(variable->name)),
                            gos_arena_intern(variable->value, strlen(variable->value))};

    if (kept.name != NULL && kept.value != NULL && *count < GOS_ENVIRONMENT_MAX)
        first[(*count)++] = kept;
}

void gos_environment_remember(void)
{
    size_t count = 0;

    each_variable(keep_first, &count);
    atomic_store_explicit(&first_count, count, memory_order_release);
}

struct wanted {
    const char *name;
    struct gos_text value;
    bool found;
};

static void copy_wanted(const struct variable *variable, void *arg)
{
    struct wanted *wanted = arg;

    if (wanted->found || strcmp(variable->name, wanted->name) != 0)
        return;
    gos_text_put(&wanted->value, variable->value);
    wanted->found = true;
}

bool gos_environment_now(const char *name, char *value, size_t room)
{
    struct wanted wanted = {.name = name, .value = gos_text_on(value, room)};

    (void)each_variable(copy_wanted, &wanted);
    return wanted.found;
}

static const struct variable *find_first(const char *name)
{
    size_t count = atomic_load_explicit(&first_count, memory_order_acquire);

    for (size_t i = 0; i < count; i++)
        if (strcmp(first[i].name, name) == 0)
            return &first[i];
    return NULL;
}

static const struct gos_variable *find(const struct gos_evidence *evidence, const char *name)
{
    for (size_t i = 0; i < evidence->variable_count; i++)
        if (strcmp(evidence->variables[i].name, name) == 0)
            return &evidence->variables[i];
    return NULL;
}

static void add(struct gos_evidence *evidence, const struct gos_variable *variable)
{
    if (variable->name == NULL || variable->value == NULL)
        gos_evidence_incomplete(evidence, "some environment variables (no memory for them)");
    else if (evidence->variable_count < GOS_ENVIRONMENT_MAX)
        evidence->variables[evidence->variable_count++] = *variable;
}

/* Without a memory of the first use there is nothing to compare with. */
static const char *value_at_start(const struct variable *variable)
{
    const struct variable *before = find_first(variable->name);

    if (atomic_load_explicit(&first_count, memory_order_acquire) == 0)
        return NULL;
    if (before == NULL)
        return "";
    return strcmp(before->value, variable->value) != 0 ? before->value : NULL;
}

static void add_present(const struct variable *variable, void *arg)
{
    struct gos_evidence *evidence = arg;
    struct gos_scratch *scratch = &evidence->scratch;

    add(evidence, &(struct gos_variable){
                      .name = gos_scratch_copy(scratch, variable->name, strlen(variable->name)),
                      .value = gos_scratch_copy(scratch, variable->value, strlen(variable->value)),
                      .at_start = value_at_start(variable),
                  });
}

static void add_gone(struct gos_evidence *evidence)
{
    size_t count = atomic_load_explicit(&first_count, memory_order_acquire);

    for (size_t i = 0; i < count; i++)
        if (find(evidence, first[i].name) == NULL)
            add(evidence, &(struct gos_variable){first[i].name, "", first[i].value});
}

/* Where the block cannot be read any more, what it held at first use is the best there is. */
static void add_first(struct gos_evidence *evidence)
{
    size_t count = atomic_load_explicit(&first_count, memory_order_acquire);

    evidence->variable_count = 0;
    for (size_t i = 0; i < count; i++)
        add(evidence, &(struct gos_variable){first[i].name, first[i].value, NULL});
    gos_evidence_incomplete(evidence, "the environment as it is now (shown as at first use)");
}

static bool name_before(const void *left, const void *right)
{
    return strcmp(((const struct gos_variable *)left)->name,
                  ((const struct gos_variable *)right)->name) < 0;
}

/* The first of the names that holds a plain number; -1 if none does. */
static int number_of(const struct gos_evidence *evidence, const char *const names[3])
{
    uint64_t value;

    for (int i = 0; i < 3; i++) {
        const struct gos_variable *variable = find(evidence, names[i]);

        if (variable != NULL && gos_procfs_number(variable->value, &value) && value <= INT32_MAX)
            return (int)value;
    }
    return -1;
}

static void find_rank(struct gos_evidence *evidence)
{
    static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
    static const char *const worlds[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"};

    evidence->rank = number_of(evidence, ranks);
    evidence->world = number_of(evidence, worlds);
}

void gos_environment_observe(struct gos_evidence *evidence)
{
    evidence->variables =
        gos_scratch_alloc(&evidence->scratch, GOS_ENVIRONMENT_MAX * sizeof(*evidence->variables));
    if (evidence->variables == NULL) {
        gos_evidence_incomplete(evidence, "environment variables (no memory for the list)");
        return;
    }
    if (each_variable(add_present, evidence))
        add_gone(evidence);
    else
        add_first(evidence);
    gos_sort_heap(evidence->variables, evidence->variable_count, sizeof(*evidence->variables),
                  name_before);
    find_rank(evidence);
}
