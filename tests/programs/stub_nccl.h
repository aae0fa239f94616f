/* Results are cudaError_t; -1: the last error does not agree with the result. */
#ifndef STUB_NCCL_H
#define STUB_NCCL_H

#include <stddef.h>

int stub_nccl_ask(size_t bytes);
int stub_nccl_pin(size_t bytes); /* pinned host memory */
int stub_nccl_ask_in_capture(size_t bytes, int *end);

#endif
