/*
 * A host that does what its words say, one after the other.  Sizes are in MiB of
 * the written scenario, whose device starts with 15,872 MiB free.
 *   a=MIB b=MIB    asks, each letter at a line of its own
 *   c=MIB d=MIB    likewise, both through one function
 *   hold=MIB       takes memory that stays
 *   give           frees what was got last by asking
 *   pend=MIB       frees memory in stream order, behind work that takes a while
 *   loop=N … next  does what is between N times; each time asks for 2 MiB more
 *   sleep=MS
 *   wait           until standard input has ended
 *   room=KIB       leaves so much of the address space
 *   nofiles        no file can be opened any more
 *   photo=NAME     copies the folder of reports, as it is now, to $PHOTOS/NAME
 *   return exit quick_exit _exit abort kill exec     the end
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host.h"

#define GOT_MAX 64

static size_t at_start;
static size_t more; /* because of loops */
static CUdeviceptr got[GOT_MAX];
static int got_count;
static int loop_start, loops_left;

__attribute__((noinline)) static CUresult get(CUdeviceptr *memory, size_t bytes)
{
    CUresult result = driver.mem_alloc(memory, bytes);

    return result; /* no tail call: these functions are to be on the stack */
}

#define LINE(name, asks)                                                                           \
    __attribute__((noinline)) static CUresult name(CUdeviceptr *memory, size_t bytes)              \
    {                                                                                              \
        CUresult result = asks(memory, bytes);                                                     \
        return result;                                                                             \
    }
LINE(ask_a, driver.mem_alloc)
LINE(ask_b, driver.mem_alloc)
LINE(ask_c, get)
LINE(ask_d, get)

typedef CUresult ask_function(CUdeviceptr *memory, size_t bytes);
static ask_function *const lines[] = {ask_a, ask_b, ask_c, ask_d};

static void ask(const char *word, unsigned mib)
{
    CUdeviceptr memory = 0;
    size_t bytes = scaled(at_start, mib) + more;
    CUresult result = lines[word[0] - 'a'](&memory, bytes);

    outcome(word, result);
    if (result == CUDA_SUCCESS && got_count < GOT_MAX)
        got[got_count++] = memory;
}

__attribute__((noinline)) static void hold(unsigned mib)
{
    CUdeviceptr memory;

    MUST(driver.mem_alloc(&memory, scaled(at_start, mib)));
}

static void work(void *unused)
{
    (void)unused;
    usleep(50000);
}

static void pend(unsigned mib)
{
    CUdeviceptr memory;
    CUstream stream;

    MUST(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    MUST(driver.mem_alloc_async(&memory, scaled(at_start, mib), stream));
    MUST(driver.launch_host_func(stream, work, NULL));
    MUST(driver.mem_free_async(memory, stream));
}

static void limit(int resource, rlim_t most)
{
    struct rlimit limits = {most, most};

    if (setrlimit(resource, &limits) != 0)
        exit(1);
}

static rlim_t address_space_bytes(void)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");

    if (!statm || fscanf(statm, "%lu", &pages) != 1)
        exit(1);
    fclose(statm);
    return (rlim_t)pages * 4096;
}

static void photo(const char *name)
{
    char command[1024];

    if (!getenv("PHOTOS"))
        return;
    snprintf(command, sizeof command, "cp -a \"$GPUOOMSHIM_REPORT_DIR\" \"$PHOTOS/%s\"", name);
    if (system(command) != 0)
        exit(1);
}

static void wait_for_end_of_input(void)
{
    char byte;

    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

/* Does not return, but for "return". */
static void end_by(const char *how)
{
    if (strcmp(how, "exit") == 0)
        exit(1);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(1);
    if (strcmp(how, "_exit") == 0)
        _exit(1);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "exec") == 0)
        execl("/bin/true", "true", (char *)NULL);
}

/* The number of the next word. */
static int do_word(char **words, int at)
{
    const char *word = words[at];
    const char *value = strchr(word, '=');
    unsigned number = value ? (unsigned)atoi(value + 1) : 0;

    if (strncmp(word, "hold=", 5) == 0) {
        hold(number);
    } else if (strncmp(word, "pend=", 5) == 0) {
        pend(number);
    } else if (strncmp(word, "sleep=", 6) == 0) {
        usleep(number * 1000);
    } else if (strncmp(word, "room=", 5) == 0) {
        limit(RLIMIT_AS, address_space_bytes() + (rlim_t)number * 1024);
    } else if (strcmp(word, "nofiles") == 0) {
        limit(RLIMIT_NOFILE, 0);
    } else if (strncmp(word, "photo=", 6) == 0) {
        photo(value + 1);
    } else if (strncmp(word, "loop=", 5) == 0) {
        loops_left = (int)number;
        loop_start = at;
    } else if (strcmp(word, "next") == 0 && --loops_left > 0) {
        more += 2 * MIB;
        return loop_start + 1;
    } else if (strcmp(word, "next") == 0) {
        more = 0;
    } else if (strcmp(word, "give") == 0) {
        MUST(driver.mem_free(got[--got_count]));
    } else if (strcmp(word, "wait") == 0) {
        wait_for_end_of_input();
    } else if (value == word + 1) {
        ask(word, number);
    } else {
        end_by(word);
    }
    return at + 1;
}

int main(int count, char **words)
{
    open_device();
    at_start = free_bytes();
    for (int at = 1; at < count;)
        at = do_word(words, at);
    return 0;
}
