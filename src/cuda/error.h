/* CUresult codes by name, from our own table (the driver may be the one that is broken). */
#ifndef GOS_CUDA_ERROR_H
#define GOS_CUDA_ERROR_H

#include <stdbool.h>

/* "CUDA_ERROR_OUT_OF_MEMORY"; "CUDA_ERROR_<unknown>" for a code not listed. */
const char *gos_cuda_error_name(int result);
/* A few words for people: "out of memory", "no kernel image for this device". */
const char *gos_cuda_error_text(int result);
/* The context is lost: every later call returns this again (700, 719, …). */
bool gos_cuda_error_is_sticky(int result);

#endif
