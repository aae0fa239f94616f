#include "torch_version.h"

#include <string.h>

#include "../base/os.h"
#include "../base/text.h"

#define PATH_BYTES 1024
#define FILE_BYTES 4096
#define DIGITS "0123456789"

/* "2.11.0+cu130": the last digit is the minor release. */
static size_t from_package(const char *package_version, struct gos_text *version)
{
    const char *local = strstr(package_version, "+cu");
    size_t length = local != NULL ? strspn(local + 3, DIGITS) : 0;

    if (length < 2)
        return 0;
    gos_text_format(version, "%.*s.%c", (int)(length - 1), local + 3, local[3 + length - 1]);
    return version->length;
}

/* "/x/torch/lib/libtorch_cuda.so" gives "/x/torch/version.py". */
static const char *path_of(const char *library_path, char path[PATH_BYTES])
{
    const char *end = strstr(library_path, "/torch/lib/");
    struct gos_text text = gos_text_on(path, PATH_BYTES);

    if (end == NULL)
        return NULL;
    gos_text_format(&text, "%.*s/torch/version.py", (int)(end - library_path), library_path);
    return text.truncated ? NULL : path;
}

/* "cuda: Optional[str] = '13.0'" or "cuda = '11.8'"; None has no quotes. */
static size_t from_line(const char *line, struct gos_text *version)
{
    size_t length = strcspn(line, "\n");
    const char *quote = memchr(line, '\'', length);

    if (quote != NULL)
        gos_text_put_n(version, quote + 1, strspn(quote + 1, DIGITS "."));
    return version->length;
}

static size_t from_file(const char *path, struct gos_text *version)
{
    char file[FILE_BYTES];

    if (path == NULL || gos_os_read_file(path, file, sizeof(file)) <= 0)
        return 0;
    for (const char *line = file; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "cuda", 4) == 0 && strchr(" :=", line[4]) != NULL)
            return from_line(line, version);
    }
    return 0;
}

size_t gos_torch_version_cuda(const char *package_version, const char *library_path, char *version,
                              size_t bytes)
{
    struct gos_text text = gos_text_on(version, bytes);
    char path[PATH_BYTES];

    if (from_package(package_version, &text) > 0)
        return text.length;
    return from_file(path_of(library_path, path), &text);
}
