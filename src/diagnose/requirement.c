#include "requirement.h"

#include <string.h>

#include "../base/text.h"
#include "../observe/versions.h"
#include "wording.h"

#define PARTS 3

static const struct {
    unsigned major, minor; /* of CUDA: this release and newer ones of the same major */
    const char *driver;
} minimums[] = {
    {13, 0, "580"},    {12, 0, "525.60.13"}, {11, 0, "450.80.02"},
    {10, 2, "440.33"}, {10, 1, "418.39"},    {10, 0, "410.48"},
};

struct release {
    uint64_t parts[PARTS];
    size_t count;
};

static struct release parse(const char *text)
{
    struct release release = {{0}, 0};
    int error;

    while (text && release.count < PARTS) {
        const char *after = gos_text_parse_digits(text, &release.parts[release.count], &error);

        if (!after)
            break;
        release.count++;
        text = *after == '.' ? after + 1 : NULL;
    }
    return release;
}

const char *gos_requirement_driver(const char *cuda_release)
{
    struct release release = parse(cuda_release);

    for (size_t i = 0; release.count > 0 && i < sizeof(minimums) / sizeof(minimums[0]); i++)
        if (release.parts[0] == minimums[i].major && release.parts[1] >= minimums[i].minor)
            return minimums[i].driver;
    return NULL;
}

bool gos_requirement_is_older(const char *a, const char *b)
{
    struct release left = parse(a), right = parse(b);

    for (size_t i = 0; left.count > 0 && right.count > 0 && i < PARTS; i++)
        if (left.parts[i] != right.parts[i])
            return left.parts[i] < right.parts[i];
    return false;
}

static const struct gos_version *next_version(const struct gos_evidence *evidence,
                                              const char *prefix, const struct gos_version *after)
{
    size_t from = after ? (size_t)(after - evidence->versions) + 1 : 0;

    for (size_t i = from; i < evidence->version_count; i++)
        if (strncmp(evidence->versions[i].what, prefix, strlen(prefix)) == 0)
            return &evidence->versions[i];
    return NULL;
}

static const char *version_of(const struct gos_version *version)
{
    return version ? version->version : "";
}

/* The file's number, where the row itself has none: "13" of "libcudart.so.13". */
static const char *release_of(const struct gos_version *version)
{
    const char *suffix = strstr(version->what, ".so.");

    return version->version[0] || !suffix ? version->version : suffix + strlen(".so.");
}

static bool lies_in(const struct gos_version *version, const char *folder)
{
    return version && strstr(version->path, folder) != NULL;
}

static bool is_compat(const struct gos_version *libcuda)
{
    return lies_in(libcuda, "/compat/") || lies_in(libcuda, "cuda-compat");
}

struct check {
    struct gos_evidence *evidence;
    struct gos_diagnosis *diagnosis;
    const struct gos_version *libcuda;
    const struct gos_version *nvml;
    const char *kernel; /* version of the kernel module; "" unknown */
};

static void report(struct check *check, const char *line, const char *advice)
{
    struct gos_diagnosis *diagnosis = check->diagnosis;

    if (line[0] && diagnosis->mismatch_count < GOS_MISMATCH_MAX)
        diagnosis->mismatches[diagnosis->mismatch_count++] =
            (struct gos_mismatch){.line = line, .advice = advice};
}

static void check_stub(struct check *check)
{
    if (lies_in(check->libcuda, "/stubs/"))
        report(check,
               gos_wording(check->evidence,
                           "the toolkit's stub was loaded as libcuda: %s; it can do nothing",
                           check->libcuda->path),
               "Take the toolkit's lib64/stubs out of LD_LIBRARY_PATH and out of RPATHs.");
}

/* A precise number on both sides; "1" is only how the file is called. */
static bool differ(const char *a, const char *b)
{
    return strchr(a, '.') && strchr(b, '.') && strcmp(a, b) != 0;
}

static void check_kernel(struct check *check)
{
    const char *file = version_of(check->libcuda);

    if (!differ(file, check->kernel) || is_compat(check->libcuda))
        return;
    report(check,
           gos_wording(check->evidence, "libcuda is %s (%s), the kernel module %s", file,
                       check->libcuda->path, check->kernel),
           "Reload the kernel module or reboot after a driver update; in a container, mount the "
           "host's libcuda instead of one in the image.");
}

static void check_nvml(struct check *check)
{
    const char *file = version_of(check->libcuda);
    const char *nvml = version_of(check->nvml);

    if (!differ(file, nvml) || is_compat(check->libcuda))
        return;
    report(check,
           gos_wording(check->evidence,
                       "libcuda and libnvidia-ml are of different drivers: %s (%s), %s (%s)", file,
                       check->libcuda->path, nvml, check->nvml->path),
           "Let both come from the driver that is installed: look at LD_LIBRARY_PATH and at what "
           "the image brings along.");
}

/* On a device of the consumer line a compat package gives 804; elsewhere it is a way to go. */
static void check_compat(struct check *check)
{
    if (is_compat(check->libcuda) && check->evidence->request.result == 804)
        report(check,
               gos_wording(check->evidence, "a forward-compatibility libcuda was loaded: %s",
                           check->libcuda->path),
               "Take the cuda-compat folder out of the library path, or update the driver.");
}

/* By the driver's own word, which counts a compat package in; else by the table. */
static bool is_too_old(const struct check *check, const char *release)
{
    int serves = check->evidence->driver_version;
    const char *least = gos_requirement_driver(release);

    if (serves > 0)
        return parse(release).parts[0] > (uint64_t)serves / 1000;
    return least && !is_compat(check->libcuda) && gos_requirement_is_older(check->kernel, least);
}

static const char *driver_words(const struct check *check)
{
    int serves = check->evidence->driver_version;

    if (serves > 0)
        return gos_wording(check->evidence, "the driver%s%s serves CUDA %d.%d",
                           check->kernel[0] ? " " : "", check->kernel, serves / 1000,
                           serves % 1000 / 10);
    return gos_wording(check->evidence, "the driver is %s", check->kernel);
}

static void check_release(struct check *check, const struct gos_version *version,
                          const char *release)
{
    const char *least = gos_requirement_driver(release);

    if (!is_too_old(check, release))
        return;
    report(check,
           gos_wording(check->evidence, "%s%s%s (%s) needs a driver of at least %s; %s",
                       version->what, version->version[0] ? " " : "", version->version,
                       version->path, least ? least : "its own release", driver_words(check)),
           gos_wording(check->evidence,
                       "Update the driver to %s or newer, or use a build for CUDA %llu.",
                       least ? least : "that release",
                       (unsigned long long)(check->evidence->driver_version > 0
                                                ? (uint64_t)check->evidence->driver_version / 1000
                                                : parse(release).parts[0] - 1)));
}

static void check_releases(struct check *check, const char *prefix)
{
    const struct gos_version *version = NULL;

    while ((version = next_version(check->evidence, prefix, version)) != NULL)
        check_release(check, version, release_of(version));
}

/* NVML's word for the driver is the kernel's; libcuda's file is not, when it is a compat one. */
static const char *kernel_version(const struct gos_evidence *evidence)
{
    const char *kernel = version_of(next_version(evidence, GOS_VERSION_KERNEL_MODULE, NULL));

    return kernel[0] ? kernel : version_of(next_version(evidence, GOS_VERSION_DRIVER, NULL));
}

/* --- one library, loaded twice --- */

/* "12" and "12.8.90" may be the same: so far as both are known. */
static bool are_apart(const char *a, const char *b)
{
    struct release left = parse(a), right = parse(b);

    for (size_t i = 0; i < left.count && i < right.count; i++)
        if (left.parts[i] != right.parts[i])
            return true;
    return false;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

static bool are_in_one_folder(const struct gos_version *a, const struct gos_version *b)
{
    size_t length = folder_length(a->path);

    return length == folder_length(b->path) && strncmp(a->path, b->path, length) == 0;
}

static bool is_precise(const struct gos_version *version)
{
    return parse(release_of(version)).count == PARTS;
}

static bool fit_together(const struct gos_version *a, const struct gos_version *b)
{
    if (are_apart(release_of(a), release_of(b)))
        return false;
    return are_in_one_folder(a, b) || (is_precise(a) && is_precise(b));
}

/* The first file against each that follows: one line tells it. */
static void check_family(struct check *check, const char *name, const char *prefix)
{
    const struct gos_version *first = next_version(check->evidence, prefix, NULL);
    const struct gos_version *other = first;

    while (other && (other = next_version(check->evidence, prefix, other)) != NULL)
        if (!fit_together(first, other))
            break;
    if (!other)
        return;
    report(check,
           gos_wording(check->evidence, "%s is loaded from two places: %s (%s), %s (%s)", name,
                       release_of(first), first->path, release_of(other), other->path),
           gos_wording(check->evidence,
                       "Let only one %s be found: look at LD_LIBRARY_PATH, and at packages that "
                       "bring their own.",
                       name));
}

void gos_requirements_check(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis)
{
    struct check check = {.evidence = evidence,
                          .diagnosis = diagnosis,
                          .libcuda = next_version(evidence, "libcuda.so", NULL),
                          .nvml = next_version(evidence, "libnvidia-ml.so", NULL),
                          .kernel = kernel_version(evidence)};

    check_stub(&check);
    check_kernel(&check);
    check_nvml(&check);
    check_compat(&check);
    check_releases(&check, "libcudart");
    check_releases(&check, GOS_VERSION_TORCH_CUDA);
    diagnosis->driver_mismatch_count = diagnosis->mismatch_count;
    check_family(&check, "cuDNN", "libcudnn");
    check_family(&check, "NCCL", "libnccl.so");
    check_family(&check, "cuBLAS", "libcublas");
}
