#include "kernel_module.h"

#include <stdbool.h>
#include <string.h>

#include "../base/os.h"
#include "../base/text.h"

#define FILE_BYTES 512
#define TITLE "Kernel Module"
#define BLANKS " \t"
#define VERSION_CHARACTERS "0123456789."

static bool is_version(const char *word, size_t length)
{
    return length > 2 && word[0] >= '0' && word[0] <= '9' &&
           strspn(word, VERSION_CHARACTERS) == length && memchr(word, '.', length) != NULL;
}

/*
 * "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug …", and
 * of the open one "… Open Kernel Module for x86_64  580.159.03  Release Build …".
 */
size_t gos_kernel_module_version(char *version, size_t bytes)
{
    struct gos_text found = gos_text_on(version, bytes);
    char text[FILE_BYTES];
    const char *word;

    if (gos_os_read_file(GOS_KERNEL_MODULE_FILE, text, sizeof(text)) <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    word = strstr(text, TITLE);
    while (word != NULL && *word != '\0') {
        size_t length = strcspn(word, BLANKS);

        if (is_version(word, length)) {
            gos_text_put_n(&found, word, length);
            return found.length;
        }
        word += length;
        word += strspn(word, BLANKS);
    }
    return 0;
}
