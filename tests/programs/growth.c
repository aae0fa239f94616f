/*
 * Twins of leak.c: memory grows, one line uses 512 MiB for a moment each round,
 * and in the end a request fails, but no line leaks.  The first argument says
 * what is different:
 *
 *   warm-up      the line that keeps stops after a quarter of the device
 *   full         it stops before the last seventh of the run
 *   cache        it fills a table at random keys and then replaces
 *   everything   four lines keep alike
 *   callers      one line keeps, called by four
 *   sawtooth     what it kept is all freed every 64th round
 *   longer       it keeps one buffer, made anew and larger each round
 *   load         no other line frees anything while it keeps
 */
#include "host.h"

#include <string.h>

#define NOINLINE __attribute__((noinline))
#define SLOTS 200

static size_t piece_bytes, used_bytes;
static CUdeviceptr slots[SLOTS];

NOINLINE static CUresult keeps(CUdeviceptr *kept, size_t bytes)
{
    CUresult result = driver.mem_alloc(kept, bytes);
    __asm__ volatile("" ::: "memory");
    return result;
}

NOINLINE static CUresult uses(size_t bytes)
{
    CUdeviceptr used;
    CUresult result = driver.mem_alloc(&used, bytes);
    if (result == CUDA_SUCCESS)
        MUST(driver.mem_free(used));
    return result;
}

static CUresult warm_up(unsigned round)
{
    CUdeviceptr kept;
    return round < 500 ? keeps(&kept, piece_bytes) : CUDA_SUCCESS;
}

static CUresult full(unsigned round)
{
    CUdeviceptr kept;
    return round < 1500 ? keeps(&kept, piece_bytes) : CUDA_SUCCESS;
}

static CUresult cache(unsigned round)
{
    static unsigned random = 12345;
    (void)round;
    random = random * 1103515245u + 12345u;
    CUdeviceptr *slot = &slots[(random >> 16) % SLOTS];
    if (*slot)
        MUST(driver.mem_free(*slot));
    return keeps(slot, 4 * piece_bytes);
}

#define KEEPS_TOO(name)                                                                            \
    NOINLINE static CUresult name(CUdeviceptr *kept)                                               \
    {                                                                                              \
        CUresult result = driver.mem_alloc(kept, piece_bytes);                                     \
        __asm__ volatile("# " #name ::: "memory");                                                 \
        return result;                                                                             \
    }
KEEPS_TOO(keeps_weights)
KEEPS_TOO(keeps_gradients)
KEEPS_TOO(keeps_moments)

static CUresult everything(unsigned round)
{
    CUdeviceptr kept;
    CUresult result = keeps(&kept, piece_bytes);
    (void)round;
    if (result == CUDA_SUCCESS)
        result = keeps_weights(&kept);
    if (result == CUDA_SUCCESS)
        result = keeps_gradients(&kept);
    if (result == CUDA_SUCCESS)
        result = keeps_moments(&kept);
    return result;
}

static CUresult callers(unsigned round)
{
    CUdeviceptr kept;
    CUresult result = keeps(&kept, piece_bytes);
    (void)round;
    if (result == CUDA_SUCCESS)
        result = keeps(&kept, piece_bytes);
    if (result == CUDA_SUCCESS)
        result = keeps(&kept, piece_bytes);
    if (result == CUDA_SUCCESS)
        result = keeps(&kept, piece_bytes);
    return result;
}

static CUresult sawtooth(unsigned round)
{
    unsigned at = round % 64;
    for (unsigned i = 0; at == 0 && i < 64; i++)
        if (slots[i])
            MUST(driver.mem_free(slots[i]));
    return keeps(&slots[at], 4 * piece_bytes);
}

static CUresult longer(unsigned round)
{
    static CUdeviceptr buffer;
    if (buffer)
        MUST(driver.mem_free(buffer));
    return keeps(&buffer, (round + 1) * piece_bytes);
}

static CUresult load(unsigned round)
{
    CUdeviceptr kept;
    (void)round;
    return keeps(&kept, piece_bytes);
}

static const struct {
    const char *name;
    CUresult (*once)(unsigned round);
    unsigned rounds; /* then everything that is left and more is asked for */
} modes[] = {
    {"warm-up", warm_up, 2000},
    {"full", full, 2000},
    {"cache", cache, 2000},
    {"callers", callers, 100000},
    {"everything", everything, 100000},
    {"sawtooth", sawtooth, 2000},
    {"longer", longer, 100000},
    {"load", load, 100000},
};

static CUresult run(CUresult (*once)(unsigned round), unsigned rounds)
{
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < rounds && result == CUDA_SUCCESS; i++) {
        result = once(i);
        if (result == CUDA_SUCCESS && once != load)
            result = uses(used_bytes);
    }
    return result;
}

int main(int count, char **words)
{
    open_device();
    size_t at_start = free_bytes();
    piece_bytes = scaled(at_start, 8);
    used_bytes = scaled(at_start, 512);
    for (size_t i = 0; count == 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(words[1], modes[i].name) != 0)
            continue;
        CUresult result = run(modes[i].once, modes[i].rounds);
        if (result == CUDA_SUCCESS)
            result = uses(free_bytes() + used_bytes);
        expect(words[1], result, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
        return 0;
    }
    return 2;
}
