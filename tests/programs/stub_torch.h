/* The stand-in for torch's allocator; results are cudaError_t. */
#ifndef STUB_TORCH_H
#define STUB_TORCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A new segment, asked for twice if need be. */
int stub_torch_take(int *number, size_t bytes);
int stub_torch_need(int *number,
                    size_t bytes); /* likewise; one that tells throws where it is not had */
void stub_torch_use(int number, size_t bytes); /* only so much of it is in use now */
void stub_torch_give(int number);              /* the segment is idle now */
/* The segment's address, NULL when there is none. */
void *stub_torch_look(int number, size_t *bytes, size_t *used_bytes);
int stub_torch_empty_cache(void); /* how many segments were freed */
void stub_torch_sit(unsigned ms); /* inside, with the lock */
int stub_torch_pin(size_t bytes); /* one pinned block, which stays cached */
int stub_torch_empty_host_cache(void);

enum stub_torch_way {
    STUB_TORCH_CACHING,
    STUB_TORCH_UNCACHED,   /* asks once, tells nothing, throws nothing */
    STUB_TORCH_CAPTURING,  /* asks once */
    STUB_TORCH_EXPANDABLE, /* segments of handles of 20 MiB */
};
void stub_torch_go(enum stub_torch_way chosen);
void stub_torch_limit(size_t bytes); /* beyond so much in all it refuses by itself; 0: no limit */

#ifdef __cplusplus
}
#endif
#endif
