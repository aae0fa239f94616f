#include "module_path.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "os.h"

#define BUFFER_BYTES 16384 /* at least a line: a path is shorter than 4096 */

static const char *parse_address(const char *text, uintptr_t *address)
{
    static const char digits[] = "0123456789abcdef";
    const char *digit;

    *address = 0;
    for (; *text && (digit = strchr(digits, *text)) != NULL; text++)
        *address = *address << 4 | (uintptr_t)(digit - digits);
    return text;
}

/* "7f01c000-7f02d000 r-xp 00000000 08:01 1234   /path", maybe with " (deleted)" */
static bool holds(const char *line, uintptr_t address)
{
    uintptr_t start;
    uintptr_t end;

    line = parse_address(line, &start);
    if (*line != '-')
        return false;
    parse_address(line + 1, &end);
    return start <= address && address < end;
}

static const char *path_of(char *line, struct gos_scratch *scratch)
{
    static const char deleted[] = " (deleted)";
    const char *path = strchr(line, '/');
    size_t length = path ? strlen(path) : 0;

    if (length > strlen(deleted) && strcmp(path + length - strlen(deleted), deleted) == 0)
        length -= strlen(deleted);
    return path ? gos_scratch_copy(scratch, path, length) : NULL;
}

/* The line of the address, whole; what follows the last whole line is moved to the front. */
static char *search(char *buffer, uintptr_t address, size_t *kept)
{
    char *line = buffer;
    char *end;

    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (holds(line, address))
            return line;
    }
    *kept = strlen(line);
    memmove(buffer, line, *kept + 1);
    return NULL;
}

static char *read_until(int fd, char *buffer, uintptr_t address)
{
    char *line = NULL;
    size_t kept = 0;
    ssize_t got;

    while (!line && (got = gos_os.read(fd, buffer + kept, BUFFER_BYTES - 1 - kept)) > 0) {
        buffer[kept + (size_t)got] = '\0';
        line = search(buffer, address, &kept);
    }
    return line;
}

const char *gos_module_mapped_path(uintptr_t address, struct gos_scratch *scratch)
{
    char *buffer = gos_scratch_alloc(scratch, BUFFER_BYTES);
    int fd = buffer ? gos_os.open("/proc/self/maps", O_RDONLY, 0) : -1;
    char *line;

    if (fd < 0)
        return NULL;
    line = read_until(fd, buffer, address);
    gos_os.close(fd);
    return line ? path_of(line, scratch) : NULL;
}
