#include "versions.h"

#include <gnu/libc-version.h>
#include <string.h>

#include "../base/module.h"
#include "../base/os.h"
#include "../base/text.h"
#include "../cuda/nvml.h"
#include "kernel_module.h"
#include "torch_version.h"
#include "wheel.h"

#define PATH_BYTES 1024
#define VERSION_BYTES 64
#define LINKS_MAX 4
#define LIBCUDA "libcuda.so"
#define LIBTORCH "libtorch_cuda.so"

/* A library of interest: how its file's name begins, what its path holds, its Python package. */
struct interest {
    const char *name;
    const char *path; /* NULL: anywhere */
    const char *stem; /* NULL: none */
};

static const struct interest interests[] = {
    {LIBCUDA, NULL, NULL},
    {"libnvidia-ml.so", NULL, NULL},
    {"libcudart", NULL, "nvidia_cuda_runtime"},
    {"libcublas.so", NULL, "nvidia_cublas"},
    {"libcublasLt.so", NULL, "nvidia_cublas"},
    {"libcudnn.so", NULL, "nvidia_cudnn"},
    {"libcudnn_", NULL, "nvidia_cudnn"}, /* its parts, each a file */
    {"libcufft.so", NULL, "nvidia_cufft"},
    {"libcusolver.so", NULL, "nvidia_cusolver"},
    {"libcusparse.so", NULL, "nvidia_cusparse"},
    {"libnccl.so", NULL, "nvidia_nccl"},
    {"libnvshmem_host.so", NULL, "nvidia_nvshmem"},
    {LIBTORCH, NULL, "torch"},
    {"libc10_cuda.so", NULL, "torch"},
    {"libtensorflow_framework.so", NULL, "tensorflow"},
    {"libjax_common.so", NULL, "jaxlib"},
    {"xla_extension.so", NULL, "jaxlib"},
    {"xla_cuda_plugin.so", NULL, "jax_cuda"},
    {"core.cpython-", "/cupy/_core/", "cupy"},
    {"librmm.so", NULL, "librmm"},
    {"libonnxruntime_providers_cuda.so", NULL, "onnxruntime_gpu"},
};

static bool is_of_interest(const struct interest *interest, const struct gos_module *module)
{
    return strncmp(module->name, interest->name, strlen(interest->name)) == 0 &&
           (interest->path == NULL || strstr(module->path, interest->path) != NULL);
}

static const struct interest *find_interest(const struct gos_module *module)
{
    for (size_t i = 0; i < sizeof(interests) / sizeof(interests[0]); i++)
        if (is_of_interest(&interests[i], module))
            return &interests[i];
    return NULL;
}

static void keep_longer(struct gos_text *version, const char *path)
{
    const char *name = strrchr(path, '/');
    const char *found = strstr(name != NULL ? name + 1 : path, ".so.");

    if (found == NULL || strlen(found + 4) <= version->length)
        return;
    *version = gos_text_on(version->data, version->size);
    gos_text_put(version, found + 4);
}

/* A link without a folder is beside the link itself. */
static bool follow(char path[PATH_BYTES])
{
    char target[PATH_BYTES];
    ssize_t length = gos_os.readlink(path, target, sizeof(target) - 1);
    char *slash = strrchr(path, '/');
    size_t folder;

    if (length <= 0 || slash == NULL)
        return false;
    folder = target[0] == '/' ? 0 : (size_t)(slash - path) + 1;
    if (folder + (size_t)length >= PATH_BYTES)
        return false;
    memcpy(path + folder, target, (size_t)length);
    path[folder + (size_t)length] = '\0';
    return true;
}

size_t gos_versions_of_file(const char *path, char *version, size_t bytes)
{
    struct gos_text text = gos_text_on(version, bytes);
    char at[PATH_BYTES];

    if (strlen(path) >= sizeof(at))
        return 0;
    strcpy(at, path);
    keep_longer(&text, at);
    for (int link = 0; link < LINKS_MAX && follow(at); link++)
        keep_longer(&text, at);
    return text.length;
}

static bool is_precise(const char *version)
{
    const char *dot = strchr(version, '.');

    return dot != NULL && strchr(dot + 1, '.') != NULL;
}

/* "12" is how the file is called, "12.8.90" is what it is: the package knows. */
static void find_version(const struct interest *interest, const struct gos_module *module,
                         char version[VERSION_BYTES])
{
    char packaged[VERSION_BYTES];

    gos_versions_of_file(module->path, version, VERSION_BYTES);
    if (interest->stem != NULL && !is_precise(version) &&
        gos_wheel_version(module->path, interest->stem, packaged, sizeof(packaged)) > 0)
        strcpy(version, packaged);
}

static void add(struct gos_evidence *evidence, const char *what, const char *version,
                const char *path)
{
    const char *copy = gos_scratch_copy(&evidence->scratch, version, strlen(version));

    if (evidence->version_count < GOS_VERSIONS_MAX)
        evidence->versions[evidence->version_count++] =
            (struct gos_version){what, copy != NULL ? copy : "", path};
}

static void add_torch_cuda(struct gos_evidence *evidence, const struct gos_module *module,
                           const char *package_version)
{
    char cuda[VERSION_BYTES];

    if (strncmp(module->name, LIBTORCH, strlen(LIBTORCH)) == 0 &&
        gos_torch_version_cuda(package_version, module->path, cuda, sizeof(cuda)) > 0)
        add(evidence, GOS_VERSION_TORCH_CUDA, cuda, module->path);
}

/* A module's strings are permanent, so they are not copied. */
static bool add_module(const struct gos_module *module, void *arg)
{
    const struct interest *interest = find_interest(module);
    char version[VERSION_BYTES] = "";

    if (interest != NULL) {
        find_version(interest, module, version);
        add(arg, module->name, version, module->path);
        add_torch_cuda(arg, module, version);
    }
    return false;
}

/* The driver's number for people is NVML's; libcuda's file carries it, too. */
static void add_driver(struct gos_evidence *evidence)
{
    const struct gos_module *libcuda = gos_module_named(LIBCUDA);
    char version[VERSION_BYTES] = "";

    if (libcuda == NULL)
        return;
    if (gos_nvml_driver_version(version, sizeof(version)) != 0) {
        version[0] = '\0';
        gos_versions_of_file(libcuda->path, version, sizeof(version));
    }
    add(evidence, GOS_VERSION_DRIVER, is_precise(version) ? version : "", "");
}

static void add_kernel_module(struct gos_evidence *evidence)
{
    char version[VERSION_BYTES];

    if (gos_kernel_module_version(version, sizeof(version)) > 0)
        add(evidence, GOS_VERSION_KERNEL_MODULE, version, GOS_KERNEL_MODULE_FILE);
}

static void add_glibc(struct gos_evidence *evidence)
{
    const struct gos_module *libc = gos_module_named("libc.so");

    add(evidence, "glibc", gnu_get_libc_version(), libc != NULL ? libc->path : "");
}

void gos_versions_observe(struct gos_evidence *evidence)
{
    evidence->versions =
        gos_scratch_alloc(&evidence->scratch, GOS_VERSIONS_MAX * sizeof(*evidence->versions));
    if (evidence->versions == NULL) {
        gos_evidence_incomplete(evidence, "versions of libraries (no memory for the list)");
        return;
    }
    add_driver(evidence);
    add_kernel_module(evidence);
    gos_module_search(add_module, evidence);
    add_glibc(evidence);
}
