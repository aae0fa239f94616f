/* The stand-in for torch's allocator; results are cudaError_t. */
#ifndef STUB_TORCH_H
#define STUB_TORCH_H

#include <stddef.h>

int stub_torch_take(int *number, size_t bytes); /* a new segment, asked for twice if need be */
void stub_torch_use(int number, size_t bytes);  /* only so much of it is in use now */
void stub_torch_give(int number);               /* the segment is idle now */
/* The segment's address, NULL when there is none. */
void *stub_torch_look(int number, size_t *bytes, size_t *used_bytes);
int stub_torch_empty_cache(void); /* how many segments were freed */
void stub_torch_sit(unsigned ms); /* inside, with the lock */
int stub_torch_pin(size_t bytes); /* one pinned block, which stays cached */
int stub_torch_empty_host_cache(void);

#endif
