#include "command_line.h"

#include <string.h>

#include "../base/os.h"
#include "../base/text.h"
#include "secrecy.h"

#define HIDDEN "(not shown)"

/* "--token=x" and "HF_TOKEN=x" show the name; "--token x" hides the word that follows. */
static bool put_word(struct gos_text *text, const char *word, size_t length, bool hide)
{
    const char *equals = memchr(word, '=', length);
    size_t name_length = equals != NULL ? (size_t)(equals - word) : length;
    bool is_name = equals != NULL || (length > 1 && word[0] == '-');
    bool secret_name = is_name && gos_secrecy_name(word, name_length);

    if (hide) {
        gos_text_put(text, HIDDEN);
    } else if (equals != NULL && (secret_name || gos_secrecy_value(word, length))) {
        gos_text_put_n(text, word, name_length + 1);
        gos_text_put(text, HIDDEN);
    } else if (equals == NULL && !secret_name && gos_secrecy_value(word, length)) {
        gos_text_put(text, HIDDEN);
    } else {
        gos_text_put_n(text, word, length);
    }
    return secret_name && equals == NULL;
}

/*
 * Words end with a NUL.  A last word without one is cut, and half a secret
 * cannot be recognised, so it is left out.
 */
void gos_command_line_observe(struct gos_evidence *evidence)
{
    char words[sizeof(evidence->command)];
    struct gos_text text = gos_text_on(evidence->command, sizeof(evidence->command));
    ssize_t got = gos_os_read_file("/proc/self/cmdline", words, sizeof(words));
    bool hide = false;

    for (ssize_t at = 0; at < got;) {
        size_t length = strnlen(words + at, (size_t)(got - at));

        if (at > 0)
            gos_text_char(&text, ' ');
        if (at + (ssize_t)length == (ssize_t)sizeof(words) - 1)
            gos_text_put(&text, "...");
        else
            hide = put_word(&text, words + at, length, hide);
        at += (ssize_t)length + 1;
    }
    if (got <= 0)
        gos_evidence_incomplete(evidence, "the command line");
}
