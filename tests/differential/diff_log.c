#include <stdarg.h>
#include <stdio.h>

#include "diff_world.h"

void diff_say(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vprintf(format, list);
    va_end(list);
}

void diff_result(CUresult result)
{
    diff_say(" %d", (int)result);
}

void diff_log_begin(uint64_t seed, unsigned index, const struct diff_step *step)
{
    diff_say("%llu.%u t%d %s %lld %lld %lld:", (unsigned long long)seed, index, step->thread,
             step->name, step->a, step->b, step->c);
}

/* Asked by the main thread, whose contexts are the primary ones. */
void diff_log_end(void)
{
    for (int device = 0; world.tells_free && device < world.device_count; device++) {
        size_t free_bytes = 0, total = 0;
        cu.context_set(world.contexts[device].handle);
        CUresult result = cu.mem_info(&free_bytes, &total);
        if (result == CUDA_SUCCESS)
            diff_say(" | %zu", free_bytes);
        else
            diff_say(" | error %d", (int)result);
    }
    cu.context_set(world.contexts[0].handle);
    diff_say("\n");
}
