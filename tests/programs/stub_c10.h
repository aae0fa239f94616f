/* The stand-in for libc10.so, beside what it has of torch's. */
#ifndef STUB_C10_H
#define STUB_C10_H

#ifdef __cplusplus
extern "C" {
#endif

enum { STUB_C10_BLOCKS, STUB_C10_OUT_OF_MEMORY };

/* How often its function was called, and a sum over all arguments and errno. */
void stub_c10_told(int which, unsigned long long *count, unsigned long long *sum);
void stub_c10_profiler_throws(int yes); /* 4711, when told of a refusal */

/* Host memory, from two places in the code. */
void stub_c10_host_block(long bytes);
void stub_c10_host_block_elsewhere(long bytes);

void stub_c10_throw(void);                                    /* an OutOfMemoryError */
int stub_c10_try(int (*body)(void *), void *arg, int thrown); /* body's result, or thrown */

#ifdef __cplusplus
}
#endif
#endif
