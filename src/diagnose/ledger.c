/*
 * The ledger of one device.  The order of the steps is the order of trust:
 * what was measured is entered as it is; what is derived (rounding, managed
 * memory, the context) gets at most the room that is left, managed memory but
 * what a context leaves of it; what nobody claims
 * is hidden; and what was claimed twice shows as a negative residual.
 */
#include "diagnosis.h"
#include "framework.h"
#include "pool_sum.h"
#include "saturate.h"

/* More than any device has, and small enough that no sum of lines can overflow. */
#define AMOUNT_MAX (1ull << 56)

struct entry_book {
    const struct gos_evidence *evidence;
    const struct gos_device_evidence *device;
    struct gos_ledger *ledger;
    struct gos_pool_sum pools;
    bool nvml;     /* its memory numbers describe what the driver describes */
    uint64_t room; /* of this process: not yet claimed by one of its lines */
};

static void enter(struct entry_book *book, enum gos_ledger_line line, uint64_t bytes,
                  enum gos_source source)
{
    book->ledger->lines[line].bytes = (int64_t)gos_lesser(bytes, AMOUNT_MAX);
    book->ledger->lines[line].source = source;
}

static uint64_t entered(const struct entry_book *book, enum gos_ledger_line line)
{
    return (uint64_t)book->ledger->lines[line].bytes;
}

/*
 * NVML speaks about the whole card, the driver about what this process may
 * see.  Where a partition (MIG, vGPU) makes them differ by more than any
 * reserve, only the driver's numbers are about this device.
 */
static bool nvml_describes(const struct gos_device_evidence *device)
{
    uint64_t total = device->nvml_total_bytes;
    if (device->nvml_status != 0 || total == 0)
        return false;
    if (!device->driver_known || device->driver_total_bytes == 0)
        return true;
    uint64_t reserve = gos_plus(device->nvml_reserved_bytes, gos_greater(total / 8, 1ull << 31));
    return total >= device->driver_total_bytes && total - device->driver_total_bytes <= reserve;
}

static void enter_reserve(struct entry_book *book)
{
    const struct gos_device_evidence *device = book->device;
    uint64_t told = device->nvml_reserved_bytes;
    /* What the driver shows to nobody cannot be had, whatever NVML calls it. */
    uint64_t unshown =
        device->driver_known ? gos_beyond(device->nvml_total_bytes, device->driver_total_bytes) : 0;
    if (!book->nvml)
        enter(book, GOS_LEDGER_RESERVE, 0, GOS_SOURCE_UNKNOWN);
    else if (told >= unshown && told > 0)
        enter(book, GOS_LEDGER_RESERVE, told, GOS_SOURCE_MEASURED);
    else
        enter(book, GOS_LEDGER_RESERVE, unshown,
              device->driver_known ? GOS_SOURCE_DERIVED : GOS_SOURCE_UNKNOWN);
}

static void enter_total(struct entry_book *book)
{
    const struct gos_device_evidence *device = book->device;
    uint64_t total = book->nvml ? device->nvml_total_bytes : device->driver_total_bytes;
    book->ledger->total_bytes = gos_lesser(total, AMOUNT_MAX);
    enter(book, GOS_LEDGER_FREE,
          device->driver_known ? device->driver_free_bytes : device->nvml_free_bytes,
          GOS_SOURCE_MEASURED);
    enter(book, GOS_LEDGER_WITHHELD, device->withheld_bytes, GOS_SOURCE_DERIVED);
    enter_reserve(book);
}

/* What one line of processes adds up to. */
struct crowd {
    uint64_t bytes;
    bool numberless; /* one of them has no number: its bytes stay on the hidden line */
};

/*
 * While we are not listed ourselves, an MPS server's number may be ours: then it
 * is nobody's and stays on the hidden line.
 */
static bool has_number(const struct entry_book *book, const struct gos_process_evidence *process)
{
    return process->used_bytes != UINT64_MAX &&
           (!process->mps_server || book->device->own_bytes_known);
}

static void add_process(const struct entry_book *book, struct crowd *crowd,
                        const struct gos_process_evidence *process)
{
    if (!has_number(book, process))
        crowd->numberless = true;
    else
        crowd->bytes = gos_plus(crowd->bytes, process->used_bytes);
}

/* A list that leaves us out leaves out others too: its silence is not a measurement. */
static void enter_crowd(struct entry_book *book, enum gos_ledger_line line,
                        const struct crowd *crowd)
{
    bool measured = !crowd->numberless && (crowd->bytes > 0 || book->device->own_bytes_known);
    enter(book, line, crowd->bytes, measured ? GOS_SOURCE_MEASURED : GOS_SOURCE_UNKNOWN);
}

static void enter_processes(struct entry_book *book)
{
    struct crowd children = {0};
    struct crowd others = {0};
    bool listed = book->device->processes_status == 0;
    for (size_t i = 0; listed && i < book->evidence->process_count; i++) {
        const struct gos_process_evidence *process = &book->evidence->processes[i];
        if (process->device != book->device->ordinal)
            continue;
        if (process->relation == GOS_PROCESS_CHILD)
            add_process(book, &children, process);
        else if (process->relation == GOS_PROCESS_OTHER)
            add_process(book, &others, process);
        /* One of the pids that /proc does not know may be ours while we are not listed. */
        else if (process->relation == GOS_PROCESS_UNSEEN && book->device->own_bytes_known)
            add_process(book, &others, process);
    }
    enter_crowd(book, GOS_LEDGER_CHILDREN, &children);
    enter_crowd(book, GOS_LEDGER_OTHERS, &others);
}

static uint64_t room_of_process(const struct entry_book *book)
{
    if (book->device->own_bytes_known)
        return gos_lesser(book->device->own_bytes, AMOUNT_MAX);
    uint64_t taken = entered(book, GOS_LEDGER_FREE) + entered(book, GOS_LEDGER_RESERVE) +
                     entered(book, GOS_LEDGER_WITHHELD) + entered(book, GOS_LEDGER_CHILDREN) +
                     entered(book, GOS_LEDGER_OTHERS);
    return gos_beyond(book->ledger->total_bytes, taken);
}

/* Enter bytes that were counted; they are believed even when there is no room for them. */
static void claim(struct entry_book *book, enum gos_ledger_line line, uint64_t bytes,
                  enum gos_source source)
{
    enter(book, line, bytes, source);
    if (entered(book, line) > book->room) {
        book->ledger->clamped = true;
        book->ledger->overbooked_bytes += entered(book, line) - book->room;
    }
    book->room = gos_beyond(book->room, entered(book, line));
}

/* Enter bytes that were reckoned; they get what room there is. */
static void claim_at_most(struct entry_book *book, enum gos_ledger_line line, uint64_t bytes,
                          enum gos_source source)
{
    uint64_t granted = gos_lesser(bytes, book->room);
    if (granted < bytes)
        book->ledger->clamped = true;
    enter(book, line, granted, granted < bytes ? GOS_SOURCE_UNKNOWN : source);
    book->room -= granted;
}

static uint64_t live_bytes(const struct entry_book *book, enum gos_kind kind)
{
    return book->device->live[kind].live_bytes;
}

static void claim_books(struct entry_book *book)
{
    claim(book, GOS_LEDGER_LIVE_DEVICE, live_bytes(book, GOS_KIND_DEVICE), GOS_SOURCE_MEASURED);
    claim(book, GOS_LEDGER_LIVE_PHYSICAL, live_bytes(book, GOS_KIND_PHYSICAL), GOS_SOURCE_MEASURED);
    claim(book, GOS_LEDGER_LIVE_ARRAY, live_bytes(book, GOS_KIND_ARRAY), GOS_SOURCE_MEASURED);
    claim(book, GOS_LEDGER_HELD, book->device->held_bytes, GOS_SOURCE_MEASURED);
}

static void claim_pools(struct entry_book *book)
{
    const struct gos_pool_sum *pools = &book->pools;
    enum gos_source told = pools->any ? GOS_SOURCE_MEASURED : GOS_SOURCE_DERIVED;
    claim(book, GOS_LEDGER_LIVE_POOL, pools->live_bytes, told);
    if (!pools->complete)
        told = GOS_SOURCE_UNKNOWN;
    else if (pools->pending_bytes)
        told = GOS_SOURCE_DERIVED;
    claim(book, GOS_LEDGER_POOL_IDLE, pools->idle_bytes, told);
    claim(book, GOS_LEDGER_POOL_PENDING, pools->pending_bytes, told);
}

static void claim_graphs(struct entry_book *book)
{
    const struct gos_device_evidence *device = book->device;
    bool told = device->graph_reserved_bytes || !live_bytes(book, GOS_KIND_GRAPH);
    enum gos_source source = told ? GOS_SOURCE_MEASURED : GOS_SOURCE_UNKNOWN;
    claim(book, GOS_LEDGER_LIVE_GRAPH, device->graph_used_bytes, source);
    claim(book, GOS_LEDGER_GRAPH_IDLE,
          gos_beyond(device->graph_reserved_bytes, device->graph_used_bytes), source);
}

/* What a context takes [H200: 524 MiB]; it cannot go to the host, as managed pages can. */
#define CONTEXT_USUAL_BYTES (512ull << 20)

static void claim_managed(struct entry_book *book)
{
    uint64_t for_context = gos_lesser(CONTEXT_USUAL_BYTES, book->room);
    book->room -= for_context;
    claim_at_most(book, GOS_LEDGER_LIVE_MANAGED, live_bytes(book, GOS_KIND_MANAGED),
                  GOS_SOURCE_DERIVED);
    book->room += for_context;
}

static void claim_derived(struct entry_book *book, uint64_t stuck_bytes)
{
    claim_at_most(book, GOS_LEDGER_ROUNDING, book->device->large_rounding_bytes,
                  GOS_SOURCE_DERIVED);
    claim_at_most(book, GOS_LEDGER_HALF_EMPTY, stuck_bytes,
                  book->device->small_lost ? GOS_SOURCE_UNKNOWN : GOS_SOURCE_DERIVED);
    if (book->pools.unplaced_bytes) {
        uint64_t unplaced = gos_lesser(book->pools.unplaced_bytes, book->room);
        book->room -= unplaced;
        enter(book, GOS_LEDGER_POOL_PENDING,
              gos_plus(entered(book, GOS_LEDGER_POOL_PENDING), unplaced), GOS_SOURCE_UNKNOWN);
    }
    claim_managed(book);
}

/* Without our own number the context cannot be told from what is hidden. */
static void claim_context(struct entry_book *book)
{
    if (!book->device->own_bytes_known)
        enter(book, GOS_LEDGER_CONTEXT, 0, GOS_SOURCE_UNKNOWN);
    else
        enter(book, GOS_LEDGER_CONTEXT, book->room,
              book->ledger->clamped ? GOS_SOURCE_UNKNOWN : GOS_SOURCE_DERIVED);
}

static void sum_own(struct gos_ledger *ledger)
{
    for (int line = 0; line < GOS_LEDGER_COUNT; line++)
        if (gos_ledger_is_own((enum gos_ledger_line)line))
            ledger->own_bytes += (uint64_t)ledger->lines[line].bytes;
}

static void close_ledger(struct gos_ledger *ledger)
{
    int64_t claimed = 0;
    for (int line = 0; line < GOS_LEDGER_HIDDEN; line++)
        claimed += ledger->lines[line].bytes;
    int64_t rest = (int64_t)ledger->total_bytes - claimed;
    ledger->lines[GOS_LEDGER_HIDDEN].bytes = rest > 0 ? rest : 0;
    ledger->lines[GOS_LEDGER_HIDDEN].source = GOS_SOURCE_DERIVED;
    ledger->lines[GOS_LEDGER_RESIDUAL].bytes = rest < 0 ? rest : 0;
    ledger->lines[GOS_LEDGER_RESIDUAL].source = GOS_SOURCE_DERIVED;
}

static void mark_unknown(struct gos_ledger *ledger)
{
    for (int line = 0; line < GOS_LEDGER_COUNT; line++)
        ledger->lines[line].source = GOS_SOURCE_UNKNOWN;
}

void gos_ledger_make(const struct gos_evidence *evidence, const struct gos_device_evidence *device,
                     const struct gos_fragmentation *blocks, struct gos_ledger *ledger)
{
    *ledger = (struct gos_ledger){0};
    struct entry_book book = {
        .evidence = evidence, .device = device, .ledger = ledger, .nvml = nvml_describes(device)};
    ledger->known = device->driver_known || book.nvml;
    if (!ledger->known) {
        mark_unknown(ledger);
        return;
    }
    gos_pool_sum_make(evidence, device, &book.pools);
    enter_total(&book);
    enter_processes(&book);
    book.room = room_of_process(&book);
    claim_books(&book);
    claim_pools(&book);
    claim_graphs(&book);
    gos_framework_split(evidence, (uint32_t)device->ordinal, ledger);
    claim_derived(&book, blocks->block_stuck_bytes);
    claim_context(&book);
    sum_own(ledger);
    close_ledger(ledger);
}
