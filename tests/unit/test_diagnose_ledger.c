/*
 * The ledger adds up, whatever the numbers are.  First made-up numbers that
 * need not fit each other, then worlds whose truth is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/diagnose/pool_sum.h"
#include "diagnose_fixture.h"

static void make_ledger(const struct gos_evidence *evidence,
                        const struct gos_device_evidence *device, struct gos_ledger *ledger)
{
    struct gos_fragmentation blocks;
    gos_fragmentation_make(evidence, device, &blocks);
    gos_ledger_make(evidence, device, &blocks, ledger);
}

#define WILD_ROUNDS 40000

static int64_t sum_of(const struct gos_ledger *ledger)
{
    int64_t sum = 0;
    for (int line = 0; line < GOS_LEDGER_COUNT; line++)
        sum += ledger->lines[line].bytes;
    return sum;
}

static uint64_t own_sum_of(const struct gos_ledger *ledger)
{
    uint64_t sum = 0;
    for (int line = 0; line < GOS_LEDGER_COUNT; line++)
        if (gos_ledger_is_own((enum gos_ledger_line)line))
            sum += (uint64_t)ledger->lines[line].bytes;
    return sum;
}

static uint64_t line_mib(const struct gos_ledger *ledger, enum gos_ledger_line line)
{
    return (uint64_t)ledger->lines[line].bytes / MIB;
}

static void assert_adds_up(const struct gos_ledger *ledger)
{
    assert_int_equal(sum_of(ledger), (int64_t)ledger->total_bytes);
    assert_int_equal(own_sum_of(ledger), ledger->own_bytes);
    for (int line = 0; line < GOS_LEDGER_COUNT; line++) {
        if (line != GOS_LEDGER_RESIDUAL)
            assert_true(ledger->lines[line].bytes >= 0);
        assert_in_range(ledger->lines[line].source, GOS_SOURCE_MEASURED, GOS_SOURCE_UNKNOWN);
    }
    if (ledger->lines[GOS_LEDGER_RESIDUAL].bytes != 0)
        assert_int_equal(ledger->lines[GOS_LEDGER_HIDDEN].bytes, 0);
}

/* --- wild numbers --- */

/* Any magnitude, the ends of the range included. */
static uint64_t wild(uint64_t *seed)
{
    uint64_t number = random_next(seed) >> random_below(seed, 64);
    return random_below(seed, 50) == 0 ? UINT64_MAX : number;
}

static bool coin(uint64_t *seed)
{
    return random_below(seed, 2) == 0;
}

struct wild_world {
    struct gos_evidence evidence;
    struct gos_pool_evidence pools[4];
    struct gos_stream_evidence streams[4];
    struct gos_process_evidence processes[6];
    struct gos_small smalls[24];
    struct gos_framework_evidence frameworks[3];
};

static void make_wild_lists(struct wild_world *world, uint64_t *seed)
{
    struct gos_evidence *evidence = &world->evidence;
    evidence->pools = world->pools;
    evidence->pool_count = random_below(seed, 5);
    for (size_t i = 0; i < evidence->pool_count; i++)
        world->pools[i] = (struct gos_pool_evidence){.device = (uint32_t)random_below(seed, 2),
                                                     .is_default = coin(seed),
                                                     .imported = coin(seed),
                                                     .attributes_known = coin(seed),
                                                     .reserved_bytes = wild(seed),
                                                     .used_bytes = wild(seed),
                                                     .live_bytes = wild(seed)};
    evidence->streams = world->streams;
    evidence->stream_count = random_below(seed, 5);
    for (size_t i = 0; i < evidence->stream_count; i++)
        world->streams[i] = (struct gos_stream_evidence){.device = (uint32_t)random_below(seed, 2),
                                                         .freed_bytes = wild(seed)};
    evidence->processes = world->processes;
    evidence->process_count = random_below(seed, 7);
    for (size_t i = 0; i < evidence->process_count; i++)
        world->processes[i] =
            (struct gos_process_evidence){.device = (int)random_below(seed, 2),
                                          .used_bytes = wild(seed),
                                          .mps_server = random_below(seed, 8) == 0,
                                          .relation = (enum gos_relation)random_below(seed, 4)};
}

static void make_wild_smalls(struct wild_world *world, uint64_t *seed)
{
    struct gos_device_evidence *device = &world->evidence.devices[0];
    uint64_t address = wild(seed) >> 8;
    device->smalls = world->smalls;
    device->small_count = random_below(seed, 25);
    device->small_lost = coin(seed) ? random_below(seed, 1000) : 0;
    for (size_t i = 0; i < device->small_count; i++) {
        world->smalls[i] = (struct gos_small){address, (uint32_t)random_below(seed, MIB + 1),
                                              (uint32_t)random_below(seed, 5)};
        address += random_below(seed, 3 * MIB);
    }
}

static void make_wild_frameworks(struct wild_world *world, uint64_t *seed)
{
    static const char *const names[] = {"torch", "cupy", "jax"};
    struct gos_evidence *evidence = &world->evidence;
    evidence->frameworks = world->frameworks;
    evidence->framework_count = random_below(seed, 4);
    for (size_t i = 0; i < evidence->framework_count; i++)
        world->frameworks[i] =
            (struct gos_framework_evidence){.name = names[i],
                                            .device = (uint32_t)random_below(seed, 2),
                                            .reserved_bytes = wild(seed),
                                            .used_bytes = wild(seed),
                                            .inactive_split_bytes = wild(seed),
                                            .in_driver_pools = coin(seed),
                                            .map_known = coin(seed),
                                            .piece_bytes = wild(seed),
                                            .fitting_bytes = wild(seed),
                                            .releasable_known = coin(seed),
                                            .releasable_bytes = wild(seed),
                                            .backend = "",
                                            .settings = "",
                                            .is_late = coin(seed)};
}

static void make_wild_device(struct wild_world *world, uint64_t *seed)
{
    struct gos_device_evidence *device = &world->evidence.devices[0];
    device->present = true;
    device->driver_known = coin(seed);
    device->driver_total_bytes = wild(seed);
    device->driver_free_bytes = wild(seed);
    device->withheld_bytes = coin(seed) ? wild(seed) : 0;
    device->held_bytes = coin(seed) ? wild(seed) : 0;
    device->nvml_status = coin(seed) ? 0 : -2;
    device->nvml_total_bytes =
        coin(seed) ? device->driver_total_bytes + random_below(seed, GIB) : wild(seed);
    device->nvml_reserved_bytes = coin(seed) ? random_below(seed, GIB) : wild(seed);
    device->nvml_free_bytes = wild(seed);
    device->processes_status = coin(seed) ? 0 : -13;
    device->own_bytes_known = coin(seed);
    device->own_bytes = wild(seed);
    for (int kind = 0; kind < GOS_KIND_COUNT; kind++)
        if (coin(seed))
            device->live[kind].live_bytes = wild(seed);
    device->graph_reserved_bytes = coin(seed) ? wild(seed) : 0;
    device->graph_used_bytes = coin(seed) ? wild(seed) : 0;
    device->large_rounding_bytes = coin(seed) ? wild(seed) : 0;
    make_wild_smalls(world, seed);
    make_wild_lists(world, seed);
    make_wild_frameworks(world, seed);
}

/* How often each thing that can happen to a ledger did. */
struct occurrences {
    unsigned known, clamped, hidden, residual, largest_amounts;
    unsigned lines[GOS_LEDGER_COUNT]; /* with bytes */
    unsigned sources[3];
};

static void count(struct occurrences *occurrences, const struct gos_ledger *ledger)
{
    occurrences->known += ledger->known;
    occurrences->clamped += ledger->clamped;
    occurrences->hidden += ledger->lines[GOS_LEDGER_HIDDEN].bytes > 0;
    occurrences->residual += ledger->lines[GOS_LEDGER_RESIDUAL].bytes < 0;
    occurrences->largest_amounts += ledger->total_bytes == 1ull << 56;
    for (int line = 0; line < GOS_LEDGER_COUNT; line++) {
        occurrences->lines[line] += ledger->lines[line].bytes != 0;
        occurrences->sources[ledger->lines[line].source]++;
    }
}

/* A generator that never gets somewhere proves nothing about that place. */
static void assert_each_occurred(const struct occurrences *occurrences)
{
    const unsigned often = WILD_ROUNDS / 200;
    assert_in_range(occurrences->known, WILD_ROUNDS / 4, WILD_ROUNDS);
    assert_in_range(occurrences->clamped, often, WILD_ROUNDS);
    assert_in_range(occurrences->hidden, often, WILD_ROUNDS);
    assert_in_range(occurrences->residual, often, WILD_ROUNDS);
    assert_in_range(occurrences->largest_amounts, often, WILD_ROUNDS);
    for (int line = 0; line < GOS_LEDGER_COUNT; line++)
        assert_in_range(occurrences->lines[line], often, WILD_ROUNDS);
    for (int source = 0; source < 3; source++)
        assert_true(occurrences->sources[source] > often);
}

static void sums_are_exact_for_any_numbers(void **state)
{
    (void)state;
    static struct wild_world world;
    uint64_t seed = 20261130;
    struct occurrences occurrences = {0};
    for (int round = 0; round < WILD_ROUNDS; round++) {
        struct gos_ledger ledger;
        memset(&world, 0, sizeof(world));
        make_wild_device(&world, &seed);
        make_ledger(&world.evidence, &world.evidence.devices[0], &ledger);
        assert_adds_up(&ledger);
        count(&occurrences, &ledger);
    }
    assert_each_occurred(&occurrences);
}

static void diagnosis_survives_any_numbers(void **state)
{
    (void)state;
    static struct wild_world world;
    static struct gos_diagnosis diagnosis;
    uint64_t seed = 4711;
    for (int round = 0; round < WILD_ROUNDS / 4; round++) {
        memset(&world, 0, sizeof(world));
        make_wild_device(&world, &seed);
        world.evidence.request = (struct gos_request){
            .api = "cudaMalloc",
            .kind = (enum gos_kind)random_below(&seed, GOS_KIND_COUNT),
            .bytes_known = coin(&seed),
            .bytes = wild(&seed),
            .result = (int)random_below(&seed, 8) ? 2 : (int)random_below(&seed, 1000),
            .requester_module = UINT32_MAX};
        gos_diagnose(&world.evidence, &diagnosis);
        assert_true(diagnosis.verdict.code < GOS_VERDICT_COUNT);
        assert_non_null(diagnosis.verdict.summary);
        assert_true(diagnosis.verdict.summary[0] != '\0');
        gos_scratch_release(&world.evidence.scratch);
    }
}

/* --- worlds whose truth is known --- */

static void ledger_of(const struct scene *scene, struct gos_evidence *evidence,
                      struct gos_ledger *ledger)
{
    scene_evidence(scene, evidence);
    make_ledger(evidence, &evidence->devices[0], ledger);
    assert_adds_up(ledger);
}

static const struct scene full_house = {.torch = 1000,
                                        .torch_physical = 900,
                                        .pieces = 800,
                                        .pool_live = 700,
                                        .pool_idle = 600,
                                        .pool_pending = 500,
                                        .pool2_idle = 50,
                                        .graph_idle = 40,
                                        .others = 2000,
                                        .children = 1500,
                                        .hidden = 300};

static void full_view_puts_every_byte_where_it_belongs(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    ledger_of(&full_house, &evidence, &ledger);
    assert_int_equal(ledger.total_bytes, (16384 + 616) * MIB);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_FREE), scene_free(&full_house));
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_RESERVE), 616);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_LIVE_DEVICE), 1800);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_LIVE_PHYSICAL), 900);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_HALF_EMPTY), 800);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_LIVE_POOL), 700);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_POOL_IDLE), 650);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_POOL_PENDING), 500);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_GRAPH_IDLE), 40);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_CONTEXT), 512);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_OTHERS), 2000);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_CHILDREN), 1500);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_HIDDEN), 300);
    assert_int_equal(ledger.lines[GOS_LEDGER_RESIDUAL].bytes, 0);
    assert_int_equal(ledger.lines[GOS_LEDGER_FREE].source, GOS_SOURCE_MEASURED);
    assert_int_equal(ledger.lines[GOS_LEDGER_OTHERS].source, GOS_SOURCE_MEASURED);
    assert_int_equal(ledger.lines[GOS_LEDGER_HIDDEN].source, GOS_SOURCE_DERIVED);
    assert_false(ledger.clamped);
    gos_scratch_release(&evidence.scratch);
}

static void what_a_view_hides_is_hidden_and_nobody_is_blamed(void **state)
{
    (void)state;
    for (int view = VIEW_NO_LIST; view < VIEW_COUNT; view++) {
        static struct gos_evidence evidence;
        struct gos_ledger ledger;
        struct scene scene = full_house;
        scene.view = (enum view)view;
        ledger_of(&scene, &evidence, &ledger);
        uint64_t children = view == VIEW_NOT_LISTED ? 1500 : 0;
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_OTHERS), 0);
        assert_int_equal(ledger.lines[GOS_LEDGER_OTHERS].source, GOS_SOURCE_UNKNOWN);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_CHILDREN), children);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_CONTEXT), 0);
        assert_int_equal(ledger.lines[GOS_LEDGER_CONTEXT].source, GOS_SOURCE_UNKNOWN);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_HIDDEN), 512 + 300 + 2000 + 1500 - children);
        gos_scratch_release(&evidence.scratch);
    }
}

static uint64_t part(uint64_t *seed, uint64_t *left)
{
    uint64_t mib = coin(seed) ? random_below(seed, *left + 1) & ~1ull : 0;
    *left -= mib;
    return mib;
}

static void make_true_world(uint64_t *seed, struct scene *scene)
{
    uint64_t left = 16384 - 512;
    *scene = (struct scene){.view = (enum view)random_below(seed, VIEW_COUNT)};
    uint64_t *parts[] = {&scene->torch,      &scene->torch_physical, &scene->app,
                         &scene->pool_live,  &scene->pool_idle,      &scene->pool_pending,
                         &scene->pool2_idle, &scene->graph_idle,     &scene->others,
                         &scene->children,   &scene->hidden};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        *parts[(i * 7 + 3) % (sizeof(parts) / sizeof(parts[0]))] = part(seed, &left);
    scene->pieces = part(seed, &left) / 2;
}

/* Whatever can be seen of others: what is our own stays on its line, to the byte. */
static void assert_own_lines_are_true(const struct scene *scene, const struct gos_ledger *ledger)
{
    assert_int_equal(line_mib(ledger, GOS_LEDGER_FREE), scene_free(scene));
    assert_int_equal(line_mib(ledger, GOS_LEDGER_LIVE_DEVICE),
                     scene->torch + scene->app + scene->pieces);
    assert_int_equal(line_mib(ledger, GOS_LEDGER_HALF_EMPTY), scene->pieces);
    assert_int_equal(line_mib(ledger, GOS_LEDGER_LIVE_PHYSICAL), scene->torch_physical);
    assert_int_equal(line_mib(ledger, GOS_LEDGER_LIVE_POOL), scene->pool_live);
    assert_int_equal(line_mib(ledger, GOS_LEDGER_POOL_IDLE), scene->pool_idle + scene->pool2_idle);
    assert_int_equal(line_mib(ledger, GOS_LEDGER_POOL_PENDING), scene->pool_pending);
    assert_int_equal(line_mib(ledger, GOS_LEDGER_GRAPH_IDLE), scene->graph_idle);
    assert_int_equal(ledger->lines[GOS_LEDGER_RESIDUAL].bytes, 0);
    assert_false(ledger->clamped);
}

static void assert_nobody_is_charged_too_much(const struct scene *scene,
                                              const struct gos_ledger *ledger)
{
    bool full = scene->view == VIEW_FULL;
    uint64_t strangers = scene->others + scene->hidden + scene->children;
    assert_true(line_mib(ledger, GOS_LEDGER_OTHERS) <= scene->others);
    assert_true(line_mib(ledger, GOS_LEDGER_CHILDREN) <= scene->children);
    assert_int_equal(line_mib(ledger, GOS_LEDGER_CONTEXT), full ? 512 : 0);
    assert_int_equal(line_mib(ledger, GOS_LEDGER_OTHERS) + line_mib(ledger, GOS_LEDGER_CHILDREN) +
                         line_mib(ledger, GOS_LEDGER_HIDDEN),
                     strangers + (full ? 0 : 512));
    if (full)
        assert_int_equal(line_mib(ledger, GOS_LEDGER_HIDDEN), scene->hidden);
}

static void a_true_world_is_told_truly_through_every_view(void **state)
{
    (void)state;
    uint64_t seed = 31337;
    for (int round = 0; round < WILD_ROUNDS / 4; round++) {
        static struct gos_evidence evidence;
        struct gos_ledger ledger;
        struct scene scene;
        make_true_world(&seed, &scene);
        ledger_of(&scene, &evidence, &ledger);
        assert_own_lines_are_true(&scene, &ledger);
        assert_nobody_is_charged_too_much(&scene, &ledger);
        gos_scratch_release(&evidence.scratch);
    }
}

/* While we are not listed, the server's number may be ours, and is nobody's. */
static void memory_of_an_mps_server_is_hidden_while_we_are_not_listed(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.app = 4000, .mps_server = 9000, .view = VIEW_NOT_LISTED};
    ledger_of(&scene, &evidence, &ledger);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_LIVE_DEVICE), 4000);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_OTHERS), 0);
    assert_int_equal(ledger.lines[GOS_LEDGER_OTHERS].source, GOS_SOURCE_UNKNOWN);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_HIDDEN), 5000);
    gos_scratch_release(&evidence.scratch);
}

static void stuck_bytes_of_a_map_that_lacks_allocations_are_not_known(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.pieces = 1000, .smalls_lost = 5};
    ledger_of(&scene, &evidence, &ledger);
    assert_int_equal(ledger.lines[GOS_LEDGER_HALF_EMPTY].source, GOS_SOURCE_UNKNOWN);
    gos_scratch_release(&evidence.scratch);
    scene.smalls_lost = 0;
    ledger_of(&scene, &evidence, &ledger);
    assert_int_equal(ledger.lines[GOS_LEDGER_HALF_EMPTY].source, GOS_SOURCE_DERIVED);
    gos_scratch_release(&evidence.scratch);
}

static void total_is_the_drivers_without_nvml(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.app = 100, .view = VIEW_NONE};
    ledger_of(&scene, &evidence, &ledger);
    assert_int_equal(ledger.total_bytes, 16384 * MIB);
    assert_int_equal(ledger.lines[GOS_LEDGER_RESERVE].source, GOS_SOURCE_UNKNOWN);
    gos_scratch_release(&evidence.scratch);
}

static void old_nvml_reserve_is_derived_from_the_totals(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.app = 100};
    scene_evidence(&scene, &evidence);
    evidence.devices[0].nvml_reserved_bytes = 0;
    make_ledger(&evidence, &evidence.devices[0], &ledger);
    assert_adds_up(&ledger);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_RESERVE), 616);
    assert_int_equal(ledger.lines[GOS_LEDGER_RESERVE].source, GOS_SOURCE_DERIVED);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_HIDDEN), 0);
    gos_scratch_release(&evidence.scratch);
}

/* NVML may describe the whole card where the driver shows one slice of it. */
static void slice_of_a_card_is_counted_by_the_driver(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.app = 100};
    scene_evidence(&scene, &evidence);
    evidence.devices[0].nvml_total_bytes = 80 * GIB;
    make_ledger(&evidence, &evidence.devices[0], &ledger);
    assert_adds_up(&ledger);
    assert_int_equal(ledger.total_bytes, 16384 * MIB);
    gos_scratch_release(&evidence.scratch);
}

static void managed_memory_that_is_not_resident_is_cut(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    struct scene scene = {.app = 1000, .managed = 200};
    scene_evidence(&scene, &evidence);
    evidence.devices[0].live[GOS_KIND_MANAGED].live_bytes = 64 * GIB;
    gos_diagnose(&evidence, &diagnosis);
    const struct gos_ledger *ledger = &diagnosis.ledgers[0];
    assert_adds_up(ledger);
    assert_true(ledger->clamped);
    assert_int_equal(ledger->own_bytes, evidence.devices[0].own_bytes);
    assert_int_equal(ledger->lines[GOS_LEDGER_LIVE_MANAGED].source, GOS_SOURCE_UNKNOWN);
    assert_int_equal(ledger->lines[GOS_LEDGER_LIVE_MANAGED].bytes, 200 * MIB);
    assert_int_equal(ledger->lines[GOS_LEDGER_CONTEXT].bytes, 512 * MIB);
    assert_int_equal(ledger->lines[GOS_LEDGER_RESIDUAL].bytes, 0);
    assert_int_equal(evidence.incomplete_count, 1);
    gos_scratch_release(&evidence.scratch);
}

static void overshoot_is_a_negative_residual(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.app = 8000, .others = 7000};
    scene_evidence(&scene, &evidence);
    evidence.devices[0].driver_free_bytes += 100 * MIB;
    make_ledger(&evidence, &evidence.devices[0], &ledger);
    assert_adds_up(&ledger);
    assert_int_equal(ledger.lines[GOS_LEDGER_RESIDUAL].bytes, -100 * (int64_t)MIB);
    gos_scratch_release(&evidence.scratch);
}

/* The driver's count keeps what cuMemFree freed, for good. */
static void count_that_sticks_is_not_believed_over_our_books(void **state)
{
    (void)state;
    for (int is_seen = 0; is_seen < 2; is_seen++) {
        static struct gos_evidence evidence;
        struct gos_ledger ledger;
        struct gos_pool_sum sum;
        struct scene scene = {.pool_live = 3000, .pool_idle = is_seen ? 2000 : 0};
        scene_evidence(&scene, &evidence);
        evidence.pools[0].used_bytes += 2000 * MIB;
        evidence.pools[0].used_sticks = is_seen; /* else by what cannot be: more than reserved */
        make_ledger(&evidence, &evidence.devices[0], &ledger);
        assert_adds_up(&ledger);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_LIVE_POOL), 3000);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_POOL_IDLE), scene.pool_idle);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_CONTEXT), 512);
        assert_false(ledger.clamped);
        gos_pool_sum_make(&evidence, &evidence.devices[0], &sum);
        assert_true(sum.complete);
        assert_int_equal(sum.surely_unpinned_bytes, 0);
        gos_scratch_release(&evidence.scratch);
    }
}

/* Whether "used" still counts freed memory is the driver's affair. */
static void pending_is_the_same_in_both_readings_of_used(void **state)
{
    (void)state;
    for (int counts_freed = 0; counts_freed < 2; counts_freed++) {
        static struct gos_evidence evidence;
        struct gos_ledger ledger;
        struct scene scene = {.pool_live = 3000, .pool_idle = 2000, .pool_pending = 1000};
        scene_evidence(&scene, &evidence);
        if (counts_freed)
            evidence.pools[0].used_bytes += 1000 * MIB;
        make_ledger(&evidence, &evidence.devices[0], &ledger);
        assert_adds_up(&ledger);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_LIVE_POOL), 3000);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_POOL_IDLE), 2000);
        assert_int_equal(line_mib(&ledger, GOS_LEDGER_POOL_PENDING), 1000);
        gos_scratch_release(&evidence.scratch);
    }
}

static void silent_pools_are_counted_by_our_books(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.pool_live = 3000, .pool_idle = 2000, .pool_silent = true};
    ledger_of(&scene, &evidence, &ledger);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_LIVE_POOL), 3000);
    assert_int_equal(ledger.lines[GOS_LEDGER_LIVE_POOL].source, GOS_SOURCE_DERIVED);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_POOL_IDLE), 0);
    assert_int_equal(ledger.lines[GOS_LEDGER_POOL_IDLE].source, GOS_SOURCE_UNKNOWN);
    gos_scratch_release(&evidence.scratch);
}

static void imported_pools_are_on_the_exporters_account(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.app = 100};
    scene_evidence(&scene, &evidence);
    evidence.pools[1].imported = true;
    evidence.pools[1].reserved_bytes = evidence.pools[1].used_bytes = 4 * GIB;
    make_ledger(&evidence, &evidence.devices[0], &ledger);
    assert_adds_up(&ledger);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_LIVE_POOL), 0);
    gos_scratch_release(&evidence.scratch);
}

static void imported_memory_is_on_no_line_of_ours(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.app = 100, .others = 5000};
    scene_evidence(&scene, &evidence);
    evidence.devices[0].live[GOS_KIND_IMPORTED].live_bytes = 4 * GIB;
    evidence.devices[0].live[GOS_KIND_HANDLE].live_bytes = 4 * GIB;
    make_ledger(&evidence, &evidence.devices[0], &ledger);
    assert_adds_up(&ledger);
    assert_int_equal(ledger.own_bytes, 612 * MIB);
    assert_int_equal(line_mib(&ledger, GOS_LEDGER_OTHERS), 5000);
    assert_false(ledger.clamped);
    gos_scratch_release(&evidence.scratch);
}

static void unreadable_device_has_an_empty_ledger(void **state)
{
    (void)state;
    static struct gos_evidence evidence;
    struct gos_ledger ledger;
    struct scene scene = {.app = 100, .view = VIEW_NONE};
    scene_evidence(&scene, &evidence);
    evidence.devices[0].driver_known = false;
    make_ledger(&evidence, &evidence.devices[0], &ledger);
    assert_adds_up(&ledger);
    assert_false(ledger.known);
    assert_int_equal(ledger.lines[GOS_LEDGER_FREE].source, GOS_SOURCE_UNKNOWN);
    gos_scratch_release(&evidence.scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_for_any_numbers),
        cmocka_unit_test(diagnosis_survives_any_numbers),
        cmocka_unit_test(full_view_puts_every_byte_where_it_belongs),
        cmocka_unit_test(what_a_view_hides_is_hidden_and_nobody_is_blamed),
        cmocka_unit_test(a_true_world_is_told_truly_through_every_view),
        cmocka_unit_test(memory_of_an_mps_server_is_hidden_while_we_are_not_listed),
        cmocka_unit_test(stuck_bytes_of_a_map_that_lacks_allocations_are_not_known),
        cmocka_unit_test(total_is_the_drivers_without_nvml),
        cmocka_unit_test(old_nvml_reserve_is_derived_from_the_totals),
        cmocka_unit_test(slice_of_a_card_is_counted_by_the_driver),
        cmocka_unit_test(managed_memory_that_is_not_resident_is_cut),
        cmocka_unit_test(overshoot_is_a_negative_residual),
        cmocka_unit_test(count_that_sticks_is_not_believed_over_our_books),
        cmocka_unit_test(pending_is_the_same_in_both_readings_of_used),
        cmocka_unit_test(silent_pools_are_counted_by_our_books),
        cmocka_unit_test(imported_pools_are_on_the_exporters_account),
        cmocka_unit_test(imported_memory_is_on_no_line_of_ours),
        cmocka_unit_test(unreadable_device_has_an_empty_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
