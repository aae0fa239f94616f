/*
 * torch (a stand-in), loaded as Python does, tells of its blocks and refusals.
 * How often its own functions were called, and with what, is the same with and
 * without the library.
 *   torch_words FOLDER WHAT      FOLDER: of libc10_cuda.so and libc10.so
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gpuoomshim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "stub_c10.h"
#include "stub_torch.h"

extern "C" {
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(long, size_t, size_t, int)
    __attribute__((weak));
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *, long, size_t, size_t, int)
    __attribute__((weak));
}

static const size_t MIB = 1 << 20, HUGE_BYTES = MIB << 16;

struct torch {
    void *c10, *library;
    decltype(&stub_torch_take) take;
    decltype(&stub_torch_need) need;
    decltype(&stub_torch_give) give;
    decltype(&stub_torch_use) use;
    decltype(&stub_torch_go) go;
    decltype(&stub_torch_limit) limit;
    decltype(&stub_c10_told) told;
    decltype(&stub_c10_profiler_throws) profiler_throws;
    decltype(&stub_c10_host_block) host_block;
    decltype(&stub_c10_host_block_elsewhere) host_block_elsewhere;
};

template <typename Function> static void find(void *library, const char *name, Function *function)
{
    *(void **)function = dlsym(library, name);
    if (!*function) {
        printf("outcome: no %s\n", name);
        exit(1);
    }
}

static torch open_torch(const std::string &folder, const char *c10 = "libc10.so")
{
    torch it;

    it.library = dlopen((folder + "/libc10_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    it.c10 = dlopen((folder + "/" + c10).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!it.library || !it.c10) {
        printf("outcome: %s\n", dlerror());
        exit(1);
    }
    find(it.library, "stub_torch_take", &it.take);
    find(it.library, "stub_torch_need", &it.need);
    find(it.library, "stub_torch_give", &it.give);
    find(it.library, "stub_torch_use", &it.use);
    find(it.library, "stub_torch_go", &it.go);
    find(it.library, "stub_torch_limit", &it.limit);
    find(it.c10, "stub_c10_told", &it.told);
    find(it.c10, "stub_c10_profiler_throws", &it.profiler_throws);
    find(it.c10, "stub_c10_host_block", &it.host_block);
    find(it.c10, "stub_c10_host_block_elsewhere", &it.host_block_elsewhere);
    return it;
}

static void close_torch(const torch &it)
{
    dlclose(it.c10);
    dlclose(it.library);
}

static void say(const torch &it, const char *when)
{
    unsigned long long count[2], sum[2];

    for (int which : {STUB_C10_BLOCKS, STUB_C10_OUT_OF_MEMORY})
        it.told(which, &count[which], &sum[which]);
    printf("outcome: %s: blocks %llu %llx refusals %llu %llx\n", when, count[0], sum[0], count[1],
           sum[1]);
    fflush(stdout);
}

static void refuse(const torch &it, const char *when)
{
    int number;

    try {
        it.need(&number, HUGE_BYTES);
        printf("outcome: %s: given\n", when);
    } catch (int thrown) {
        printf("outcome: %s: the profiler threw %d\n", when, thrown);
    } catch (...) {
        printf("outcome: %s: refused\n", when);
    }
}

static void take_and_give(const torch &it)
{
    int number;

    printf("outcome: take %d\n", it.take(&number, 4 * MIB));
    it.use(number, MIB);
    it.give(number);
}

/* Before and after cuInit, and every way in which a request is refused. */
static void all_ways(const torch &it)
{
    it.host_block(7);
    it.host_block_elsewhere(-7);
    say(it, "before cuInit");
    take_and_give(it);
    it.host_block(8);
    refuse(it, "caching");
    it.go(STUB_TORCH_CAPTURING);
    refuse(it, "capturing");
    it.go(STUB_TORCH_EXPANDABLE);
    take_and_give(it);
    refuse(it, "expandable");
    it.limit(MIB);
    refuse(it, "limit");
    it.limit(0);
    say(it, "before uncached");
    it.go(STUB_TORCH_UNCACHED);
    refuse(it, "uncached");
    it.profiler_throws(1);
    it.go(STUB_TORCH_CACHING);
    refuse(it, "profiler");
    refuse(it, "profiler again");
    say(it, "end");
}

/* A child has whatever was known, and whatever was not; in none does it wait. */
static int child(const torch &it, const std::string &folder, bool loads)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        torch mine = loads ? open_torch(folder + "/../torch_beside", "libc10_beside.so") : it;
        unsigned long long before, after, sum;
        alarm(20);
        mine.told(STUB_C10_BLOCKS, &before, &sum);
        mine.host_block(1);
        mine.host_block_elsewhere(2);
        mine.told(STUB_C10_BLOCKS, &after, &sum);
        _exit(after - before == 2 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void children(const torch &it, const std::string &folder)
{
    printf("outcome: before cuInit %d %d\n", child(it, folder, false), child(it, folder, true));
    take_and_give(it);
    printf("outcome: after cuInit %d %d\n", child(it, folder, false), child(it, folder, true));
    it.host_block(1);
    printf("outcome: known %d\n", child(it, folder, false));
    say(it, "parent");
}

/* Others load, unload and fork meanwhile. */
static void many(const torch &it, const std::string &folder)
{
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> tellers;
    int number;

    it.take(&number, 4 * MIB);
    std::thread loader([&] {
        while (!over) {
            void *other = dlopen((folder + "/../liblookup_plugin.so").c_str(), RTLD_NOW);
            if (other)
                dlclose(other);
        }
    });
    std::thread forker([&] {
        for (int i = 0; i < 20; i++)
            if (int ended = child(it, folder, false)) {
                fprintf(stderr, "shim: child=%d\n", ended);
                wrong++;
            }
    });
    for (int i = 0; i < 4; i++)
        tellers.emplace_back([&] {
            for (int round = 0; round < 20000; round++) {
                it.host_block(round);
                it.use(number, MIB);
                it.use(number, MIB);
                if (round % 1000 == 0)
                    it.take(new int, HUGE_BYTES);
            }
        });
    for (std::thread &teller : tellers)
        teller.join();
    forker.join();
    over = true;
    loader.join();
    unsigned long long blocks, refusals, sum;
    it.told(STUB_C10_BLOCKS, &blocks, &sum);
    it.told(STUB_C10_OUT_OF_MEMORY, &refusals, &sum);
    printf("outcome: blocks %llu refusals %llu children %d\n", blocks, refusals, wrong.load());
}

/* libc10_cuda.so comes back where it was, but its libc10.so, whose place is taken, cannot. */
static void reload(torch it, const std::string &folder, bool after_init)
{
    if (after_init)
        take_and_give(it);
    for (int round = 0; round < 4; round++) {
        void *before = (void *)it.host_block, *caller = (void *)it.use;
        it.host_block(round);
        it.use(0, round + 1);
        say(it, "loaded");
        close_torch(it);
        mmap((void *)((uintptr_t)before & ~(uintptr_t)4095), 4096, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        it = open_torch(folder);
        fprintf(stderr, "shim: moved=%d\n",
                (void *)it.host_block != before && (void *)it.use == caller);
        it.use(0, round + 1);
        it.host_block(-round);
        say(it, "loaded again");
    }
}

static void two(const torch &it, const std::string &folder)
{
    torch other = open_torch(folder + "/../torch_beside", "libc10_beside.so");

    it.host_block(1);
    other.host_block(2);
    other.host_block(3);
    take_and_give(it);
    take_and_give(other);
    refuse(it, "one");
    refuse(other, "other");
    say(it, "one");
    say(other, "other");
}

static const char *const names[] = {"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE",
                                    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"};

static void look_up(const char *when)
{
    for (const char *name : names)
        printf("outcome: %s: default %d program %d\n", when, dlsym(RTLD_DEFAULT, name) != nullptr,
               dlsym(dlopen(nullptr, RTLD_NOW), name) != nullptr);
}

static void lookups(const std::string &folder)
{
    look_up("none");
    torch it = open_torch(folder);
    look_up("local");
    for (const char *name : names)
        printf("outcome: own %d\n", dlsym(it.c10, name) != nullptr);
    dlopen((folder + "/libc10.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
    look_up("global");
}

/* No torch is loaded, yet the name is there with the library. */
static void absent()
{
    size_t free_bytes, total_bytes;

    for (int turn = 0; turn < 2; turn++) {
        if (_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE) {
            _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(1, 2, 3, 1);
            _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(nullptr, 1, 2, 3, 1);
        }
        cudaMemGetInfo(&free_bytes, &total_bytes);
    }
    if (gpuoomshim_snapshot)
        fprintf(stderr, "shim: snapshot=%d\n", gpuoomshim_snapshot(nullptr));
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    std::string folder = words[1], what = words[2];

    if (what == "ways")
        all_ways(open_torch(folder));
    else if (what == "children")
        children(open_torch(folder), folder);
    else if (what == "many")
        many(open_torch(folder), folder);
    else if (what == "reload" || what == "reload-after-init")
        reload(open_torch(folder), folder, what == "reload-after-init");
    else if (what == "two")
        two(open_torch(folder), folder);
    else if (what == "lookups")
        lookups(folder);
    else if (what == "absent")
        absent();
    else
        return 2;
    printf("outcome: end\n");
    return 0;
}
