/* The ledger in two lines: the device's shares, and of those what is ours. */
#include "screen_parts.h"

static uint64_t line_bytes(const struct gos_ledger *ledger, enum gos_ledger_line line)
{
    int64_t bytes = ledger->lines[line].bytes;
    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Below this, one decimal of a GiB reads 0.0 and says nothing. */
#define SHOWN_BYTES (UINT64_C(1) << 30) / 20

static void put_share(struct gos_text *text, const char *separator, const char *name,
                      uint64_t bytes, bool always)
{
    if (bytes < SHOWN_BYTES && !always)
        return;
    gos_screen_separate(text, separator);
    gos_text_format(text, "%s ", name);
    gos_text_gib(text, bytes);
}

static uint64_t live_bytes(const struct gos_ledger *ledger)
{
    uint64_t bytes = 0;
    for (unsigned i = GOS_LEDGER_LIVE_DEVICE; i <= GOS_LEDGER_LIVE_GRAPH; i++)
        bytes += line_bytes(ledger, (enum gos_ledger_line)i);
    return bytes;
}

static void put_own(struct gos_text *text, const struct gos_ledger *ledger)
{
    uint64_t idle =
        line_bytes(ledger, GOS_LEDGER_POOL_IDLE) + line_bytes(ledger, GOS_LEDGER_GRAPH_IDLE);
    uint64_t waste =
        line_bytes(ledger, GOS_LEDGER_ROUNDING) + line_bytes(ledger, GOS_LEDGER_HALF_EMPTY);
    put_share(text, ", ", "live", live_bytes(ledger), true);
    put_share(text, ", ", "unused by frameworks", line_bytes(ledger, GOS_LEDGER_FRAMEWORK_IDLE),
              false);
    put_share(text, ", ", "idle in pools", idle, false);
    put_share(text, ", ", "freed but pending", line_bytes(ledger, GOS_LEDGER_POOL_PENDING), false);
    put_share(text, ", ", "held in reserve", line_bytes(ledger, GOS_LEDGER_HELD), false);
    put_share(text, ", ", "lost to 2 MiB blocks", waste, false);
    put_share(text, ", ", "contexts and modules", line_bytes(ledger, GOS_LEDGER_CONTEXT), false);
}

static void put_ledger(struct gos_text *text, const struct gos_ledger *ledger)
{
    int64_t residual = ledger->lines[GOS_LEDGER_RESIDUAL].bytes;
    gos_text_gib(text, ledger->total_bytes);
    gos_text_put(text, " GiB = ");
    gos_text_put(text, "free ");
    gos_text_gib(text, line_bytes(ledger, GOS_LEDGER_FREE));
    put_share(text, " + ", "driver", line_bytes(ledger, GOS_LEDGER_RESERVE), false);
    put_share(text, " + ", "withheld", line_bytes(ledger, GOS_LEDGER_WITHHELD), false);
    put_share(text, " + ", "this process", ledger->own_bytes, true);
    put_share(text, " + ", "own children", line_bytes(ledger, GOS_LEDGER_CHILDREN), false);
    put_share(text, " + ", "other processes", line_bytes(ledger, GOS_LEDGER_OTHERS), false);
    put_share(text, " + ", "hidden", line_bytes(ledger, GOS_LEDGER_HIDDEN), false);
    if (residual < 0)
        put_share(text, " - ", "unaccounted", -(uint64_t)residual, false);
    else
        put_share(text, " + ", "unaccounted", (uint64_t)residual, false);
}

void gos_screen_ledger(struct gos_screen *screen, const struct gos_document *document, int ordinal,
                       uint8_t importance)
{
    const struct gos_ledger *ledger = &document->report->diagnosis->ledgers[ordinal];
    char label[16];
    char buffer[GOS_SCREEN_WORDS];
    struct gos_text name = gos_text_on(label, sizeof label);
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    struct gos_text own = gos_text_on(buffer, sizeof buffer);
    if (!document->report->diagnosis->evidence->devices[ordinal].present || !ledger->known)
        return;
    gos_text_format(&name, "GPU %d", ordinal);
    put_ledger(&text, ledger);
    gos_screen_add(screen, importance, label, buffer, 2);
    buffer[0] = '\0';
    put_own(&own, ledger);
    gos_screen_add(screen, (uint8_t)(importance - 1), "  of ours", buffer, 2);
}
