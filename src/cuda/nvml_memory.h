/* What NVML's two memory calls fill in, as its reference manual gives them. */
#ifndef GOS_CUDA_NVML_MEMORY_H
#define GOS_CUDA_NVML_MEMORY_H

struct gos_nvml_memory_v1 {
    unsigned long long total, free, used; /* what is reserved counts as used */
};

struct gos_nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define GOS_NVML_MEMORY_V2 ((unsigned)sizeof(struct gos_nvml_memory_v2) | 2u << 24)

#endif
