/*
 * What a program can see of the size of its device; run on a small device and
 * on a large one that acts as a small one, it must see the same.
 *   rehearse_limit before | info | kinds | pools | blocks | contexts | child
 *   rehearse_limit threads [MiB that may be live; all that is free]
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define PIECE (256 * MIB)
#define PIECES_MAX 256

/* --- info ------------------------------------------------------------------------------------- */

struct nvml_v1 {
    unsigned long long total, free, used;
};
struct nvml_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

static void *nvml;
static void *nvml_device;

static void *nvml_function(const char *name)
{
    void *found = dlsym(nvml, name);
    if (found == NULL)
        exit(1);
    return found;
}

static bool open_nvml(void)
{
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (nvml == NULL)
        return false;
    int (*init)(void) = (int (*)(void))nvml_function("nvmlInit_v2");
    int (*by_index)(unsigned, void **) =
        (int (*)(unsigned, void **))nvml_function("nvmlDeviceGetHandleByIndex_v2");
    return init() == 0 && by_index(0, &nvml_device) == 0;
}

static void print_mib(const char *what, unsigned long long bytes)
{
    printf("outcome: %s %llu\n", what, bytes / MIB);
}

static void print_nvml(void)
{
    struct nvml_v1 one = {0};
    struct nvml_v2 two = {.version = (unsigned)sizeof two | 2u << 24};
    int (*v1)(void *, void *) = (int (*)(void *, void *))nvml_function("nvmlDeviceGetMemoryInfo");
    int (*v2)(void *, void *) =
        (int (*)(void *, void *))nvml_function("nvmlDeviceGetMemoryInfo_v2");

    printf("outcome: nvml says %d %d\n", v1(nvml_device, &one), v2(nvml_device, &two));
    print_mib("nvml total", one.total);
    print_mib("nvml free", one.free);
    print_mib("nvml used", one.used);
    print_mib("nvml v2 total", two.total);
    print_mib("nvml v2 reserved", two.reserved);
    print_mib("nvml v2 free", two.free);
    print_mib("nvml v2 used", two.used);
}

static void print_info(void)
{
    size_t free_now, total;
    MUST(driver.mem_get_info(&free_now, &total));
    print_mib("free", free_now);
    print_mib("total", total);
    if (driver.mem_get_info(NULL, &total) == CUDA_SUCCESS) /* drivers may refuse it */
        print_mib("total alone", total);
    MUST(driver.device_total(&total, 0));
    print_mib("device total", total);
    if (nvml != NULL)
        print_nvml();
}

static void info(void)
{
    CUdeviceptr live;

    if (!open_nvml())
        nvml = NULL;
    print_info();
    MUST(driver.mem_alloc(&live, 1000 * MIB));
    print_info();
    MUST(driver.mem_free(live));
    print_info();
}

/* Before there is CUDA, and with it. */
static void before(void)
{
    if (!open_nvml())
        nvml = NULL;
    for (int i = 0; i < 2; i++) {
        if (nvml != NULL)
            print_nvml();
        if (i == 0)
            open_device();
    }
}

/* --- kinds ------------------------------------------------------------------------------------ */

static CUstream stream;
static uint64_t pieces[PIECES_MAX];

static CUresult make_device(uint64_t *piece)
{
    return driver.mem_alloc((CUdeviceptr *)piece, PIECE);
}

static void free_device(uint64_t piece)
{
    MUST(driver.mem_free(piece));
}

static CUresult make_pitched(uint64_t *piece)
{
    size_t pitch;
    return driver.mem_alloc_pitch((CUdeviceptr *)piece, &pitch, 1000, PIECE / 1024, 4);
}

static CUresult make_physical(uint64_t *piece)
{
    CUmemAllocationProp prop = {0};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return driver.mem_create((CUmemGenericAllocationHandle *)piece, PIECE, &prop, 0);
}

static void free_physical(uint64_t piece)
{
    MUST(driver.mem_release(piece));
}

static CUresult make_array(uint64_t *piece)
{
    CUDA_ARRAY_DESCRIPTOR flat = {
        .Width = 8192, .Height = 8192, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    return driver.array_create((CUarray *)piece, &flat);
}

static void free_array(uint64_t piece)
{
    MUST(driver.array_destroy((CUarray)(uintptr_t)piece));
}

static CUresult make_ordered(uint64_t *piece)
{
    return driver.mem_alloc_async((CUdeviceptr *)piece, PIECE, stream);
}

static void free_ordered(uint64_t piece)
{
    MUST(driver.mem_free_async(piece, stream));
}

static const struct {
    const char *name;
    CUresult (*make)(uint64_t *);
    void (*free)(uint64_t);
} kinds[] = {
    {"device", make_device, free_device},       {"pitched", make_pitched, free_device},
    {"physical", make_physical, free_physical}, {"array", make_array, free_array},
    {"ordered", make_ordered, free_ordered},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

/* Until it fails; what is left is what other kinds get. */
static unsigned fill(unsigned kind)
{
    unsigned count = 0;
    CUresult result = CUDA_SUCCESS;

    while (count < PIECES_MAX && (result = kinds[kind].make(&pieces[count])) == CUDA_SUCCESS)
        count++;
    printf("outcome: %s %u then %d\n", kinds[kind].name, count, (int)result);
    return count;
}

static void all_kinds(void)
{
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 2 * KIND_COUNT; i++) {
        unsigned kind = i % KIND_COUNT;
        unsigned count = fill(kind);
        for (unsigned other = 0; other < KIND_COUNT; other++) {
            uint64_t piece = 42;
            CUresult result = kinds[other].make(&piece);
            printf("outcome: full, %s gives %d\n", kinds[other].name, (int)result);
            if (kinds[other].free == free_device)
                printf("outcome: and leaves %llu\n", (unsigned long long)piece);
        }
        while (count > 0)
            kinds[kind].free(pieces[--count]);
        MUST(driver.stream_synchronize(stream));
    }
}

/* --- pools ------------------------------------------------------------------------------------ */

static void keep_all(void)
{
    CUmemoryPool pool;
    cuuint64_t all = UINT64_MAX;
    MUST(driver.pool_default(&pool, 0));
    MUST(driver.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
}

static void pools(void)
{
    CUdeviceptr ordered, device = 0, refused;
    size_t most = scaled(free_bytes(), 10240);

    keep_all();
    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 200; i++) {
        MUST(driver.mem_alloc_async(&ordered, most, stream));
        MUST(driver.mem_free_async(ordered, stream));
    }
    /* Freed and observed, but kept: the driver takes it back for whoever needs it. */
    MUST(driver.stream_synchronize(stream));
    outcome("beside idle memory of a pool", driver.mem_alloc(&device, most));
    outcome("and no more", driver.mem_alloc_async(&refused, most, stream));
    MUST(driver.mem_free(device));
    MUST(driver.mem_alloc_async(&ordered, most, stream));
    outcome("beside live memory of a pool", driver.mem_alloc(&refused, most));
    MUST(driver.mem_free_async(ordered, stream));
    MUST(driver.stream_synchronize(stream));
    outcome("after all", driver.mem_alloc(&device, most));
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* Small ones fill what is left of shared blocks, and not one block more. */
static void blocks(void)
{
    CUdeviceptr rest, piece;
    unsigned count = 0;
    CUresult result;

    MUST(driver.mem_alloc(&rest, (free_bytes() / MIB / 2 * 2 - 64) * MIB));
    while ((result = driver.mem_alloc(&piece, 700 * 1024)) == CUDA_SUCCESS)
        count++;
    printf("outcome: of 700 KiB %u then %d\n", count, (int)result);
    for (count = 0; (result = driver.mem_alloc(&piece, 100 * 1024)) == CUDA_SUCCESS; count++)
        ;
    printf("outcome: of 100 KiB %u then %d\n", count, (int)result);
    print_info();
}

/* --- contexts --------------------------------------------------------------------------------- */

static void contexts(void)
{
    CUcontext context;

    for (int i = 0; i < 3; i++) {
        fill(0);
        print_info();
        MUST(driver.primary_reset(0));
        MUST(driver.primary_retain(&context, 0));
        MUST(driver.context_set(context));
        print_info();
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

#define THREADS 16
#define ROUNDS 300

static CUcontext shared;
static void (*books)(int, uint64_t *, uint64_t *);
static size_t most_live;
static unsigned _Atomic overshoots, served;

static void check_books(void)
{
    uint64_t bytes = 0, count = 0;
    if (books != NULL)
        books(0, &bytes, &count);
    overshoots += bytes > most_live;
}

/* Whole blocks, so that what is alive is what is taken. */
static void *storm(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;
    CUdeviceptr live[4] = {0};

    MUST(driver.context_set(shared));
    for (int i = 0; i < ROUNDS; i++) {
        CUdeviceptr *slot = &live[rand_r(&seed) % 4];
        if (*slot != 0) {
            MUST(driver.mem_free(*slot));
            *slot = 0;
        } else if (driver.mem_alloc(slot, (1 + (size_t)rand_r(&seed) % 256) * 2 * MIB) == 0) {
            served++;
        }
        check_books();
    }
    for (int i = 0; i < 4; i++)
        if (live[i] != 0)
            MUST(driver.mem_free(live[i]));
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    books = (void (*)(int, uint64_t *, uint64_t *))dlsym(library, "gpusim_books");
    MUST(driver.primary_retain(&shared, 0));
    if (most_live == 0)
        most_live = free_bytes();
    size_t at_start = free_bytes();
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, storm, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    printf("outcome: overshoots %u, served %d\n", overshoots, served > 0);
    printf("outcome: all is back %d\n", free_bytes() == at_start);
}

/* --- child ------------------------------------------------------------------------------------ */

/* A child of an initialised process cannot use CUDA, whatever its parent had reserved. */
static void child(void)
{
    CUdeviceptr live;
    int status;

    fill(0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        outcome("in the child", driver.mem_alloc(&live, PIECE));
        _exit(0);
    }
    waitpid(pid, &status, 0);
    outcome("in the parent", driver.mem_alloc(&live, PIECE));
    free_device(pieces[0]);
    outcome("in the parent, after a free", driver.mem_alloc(&live, PIECE));
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"before", before},   {"info", info},     {"kinds", all_kinds},
                 {"pools", pools},     {"blocks", blocks}, {"contexts", contexts},
                 {"threads", threads}, {"child", child}};

    if (count < 2)
        return 1;
    if (count > 2)
        most_live = (size_t)atoi(words[2]) * MIB;
    if (strcmp(words[1], "before") != 0)
        open_device();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(words[1], parts[i].name) == 0) {
            parts[i].run();
            return 0;
        }
    }
    return 1;
}
