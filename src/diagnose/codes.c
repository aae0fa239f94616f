/* The words of the lists in diagnosis.h. */
#include "diagnosis.h"

#define NAME_CODE(name, code, ...) [GOS_LEDGER_##name] = (code),
#define NAME_WORDS(name, code, words, own) [GOS_LEDGER_##name] = (words),
#define NAME_OWN(name, code, words, own) [GOS_LEDGER_##name] = (own),
#define VERDICT_CODE(name, code, words) [GOS_VERDICT_##name] = (code),
#define VERDICT_WORDS(name, code, words) [GOS_VERDICT_##name] = (words),

const char *gos_ledger_code(enum gos_ledger_line line)
{
    static const char *const codes[GOS_LEDGER_COUNT] = {GOS_LEDGER_LINES(NAME_CODE)};
    return (unsigned)line < GOS_LEDGER_COUNT ? codes[line] : "unknown";
}

const char *gos_ledger_words(enum gos_ledger_line line)
{
    static const char *const words[GOS_LEDGER_COUNT] = {GOS_LEDGER_LINES(NAME_WORDS)};
    return (unsigned)line < GOS_LEDGER_COUNT ? words[line] : "unknown";
}

bool gos_ledger_is_own(enum gos_ledger_line line)
{
    static const bool own[GOS_LEDGER_COUNT] = {GOS_LEDGER_LINES(NAME_OWN)};
    return (unsigned)line < GOS_LEDGER_COUNT && own[line];
}

const char *gos_verdict_code(enum gos_verdict_code code)
{
    static const char *const codes[GOS_VERDICT_COUNT] = {GOS_VERDICTS(VERDICT_CODE)};
    return (unsigned)code < GOS_VERDICT_COUNT ? codes[code] : "unexplained";
}

const char *gos_verdict_words(enum gos_verdict_code code)
{
    static const char *const words[GOS_VERDICT_COUNT] = {GOS_VERDICTS(VERDICT_WORDS)};
    return (unsigned)code < GOS_VERDICT_COUNT ? words[code] : "unknown";
}

const char *gos_source_code(enum gos_source source)
{
    static const char *const codes[] = {"measured", "derived", "unknown"};
    return (unsigned)source < 3 ? codes[source] : "unknown";
}

const char *gos_confidence_code(enum gos_confidence confidence)
{
    static const char *const codes[] = {"proven", "likely", "possible"};
    return (unsigned)confidence < 3 ? codes[confidence] : "possible";
}
