#include <stdarg.h>
#include <stdio.h>

#include "command.h"

void gos_command_complain(const char *format, ...)
{
    va_list args;
    fputs("gpuoomshim: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}
