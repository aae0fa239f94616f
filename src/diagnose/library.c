#include "library.h"

#include <stddef.h>
#include <string.h>

#include "diagnosis.h"

/* Libraries by the beginning of their file name. */
static const struct {
    const char *prefix;
    const char *name;
} files[] = {
    {"libc10", "torch"},
    {"libtorch", "torch"},
    {"libnccl", "nccl"},
    {"libcublas", "cublas"},
    {"libcudnn", "cudnn"},
    {"libcufft", "cufft"},
    {"libcusolver", "cusolver"},
    {"libcusparse", "cusparse"},
    {"libcurand", "curand"},
    {"libcutensor", "cutensor"},
    {"libnvshmem", "nvshmem"},
    {"librmm", "rmm"},
    {"libcudf", "cudf"},
    {"libcupy", "cupy"},
    {"cupy", "cupy"},
    {"libggml", "llama.cpp"},
    {"libllama", "llama.cpp"},
    {"libtensorflow", "tensorflow"},
    {"libonnxruntime", "onnxruntime"},
    {"onnxruntime", "onnxruntime"},
    {"libnvinfer", "tensorrt"},
    {"libpaddle", "paddle"},
    {"libctranslate2", "ctranslate2"},
    {"xla_cuda_plugin", "jax"},
    {"pjrt_c_api_gpu", "jax"},
    {"libjax", "jax"},
    {"xla_extension", "jax"},
    {"libpython", "python"},
    {"python", "python"},
};

/* Python packages by the directory right below site-packages or dist-packages. */
static const struct {
    const char *prefix;
    const char *name;
} packages[] = {
    {"torch/", "torch"},
    {"cupy", "cupy"},
    {"jax", "jax"},
    {"tensorflow", "tensorflow"},
    {"onnxruntime", "onnxruntime"},
    {"tensorrt", "tensorrt"},
    {"vllm", "vllm"},
    {"rmm/", "rmm"},
    {"librmm/", "rmm"},
    {"cudf", "cudf"},
    {"numba", "numba"},
    {"pycuda", "pycuda"},
    {"llama_cpp", "llama.cpp"},
    {"paddle", "paddle"},
    {"sglang", "sglang"},
    {"flashinfer", "flashinfer"},
    {"triton", "triton"},
    {"cuda/", "cuda-python"},
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What follows the last "-packages/", or NULL. */
static const char *package_of(const char *path)
{
    static const char mark[] = "-packages/";
    const char *found = NULL;
    for (const char *at = strstr(path, mark); at; at = strstr(at + 1, mark))
        found = at + sizeof(mark) - 1;
    return found;
}

static const char *by_file(const char *file)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (begins(file, files[i].prefix))
            return files[i].name;
    return NULL;
}

static const char *by_package(const char *package)
{
    for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
        if (begins(package, packages[i].prefix))
            return packages[i].name;
    return NULL;
}

const char *gos_library_name(const char *module_path)
{
    if (!module_path)
        return "";
    const char *file = file_of(module_path);
    const char *name = by_file(file);
    const char *package = package_of(module_path);
    if (!name && package)
        name = by_package(package);
    return name ? name : file;
}

bool gos_library_is_bridge(const char *module_path)
{
    const char *file = file_of(module_path);
    return begins(file, "_ctypes") || begins(file, "libffi") || begins(file, "_cffi_backend");
}

static bool listed(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; name && i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool gos_library_caches(const char *library_name)
{
    static const char *const names[] = {"torch",       "cupy", "jax",    "tensorflow",
                                        "onnxruntime", "rmm",  "paddle", "vllm"};
    return listed(library_name, names, sizeof(names) / sizeof(names[0]));
}
