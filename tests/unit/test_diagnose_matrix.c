/*
 * The confusion matrix: cases in pairs that differ in one fact, the verdict that
 * is right for each, and what is given.  Any wrong verdict fails; one that is
 * wrong and calls itself proven is counted apart.  scripts/test.sh shows what
 * this prints.
 *
 * A verdict without cases fails too, so a new one brings its twins with it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "diagnose_fixture.h"

#define IS(code, confidence) GOS_VERDICT_##code, GOS_CONFIDENCE_##confidence
#define LIBCUDA "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.03"
#define NVML "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.03"
#define COMPAT "/usr/local/cuda/compat/libcuda.so.580.95.05"

static const struct scene cases[] = {
    /* --- leak and warm-up --- */
    {"one line keeps more and more, another one fails", IS(LEAK, LIKELY), .app = 14000,
     .torch = 1000, .course = COURSE_LEAK, .ask = 3000 * MIB, .by = SITE_NCCL,
     .says = "train.py:88 load_batch keeps more and more"},
    {"twin: it held all that since its warm-up", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 14000,
     .torch = 1000, .course = COURSE_FLAT, .ask = 3000 * MIB, .by = SITE_NCCL},
    {"twin: nothing was freed, so it may be loading", IS(EXHAUSTED_BY_PROCESS, PROVEN),
     .app = 14000, .torch = 1000, .course = COURSE_UNFREED, .ask = 3000 * MIB, .by = SITE_NCCL,
     .says = "loads more than fits, or it leaks"},
    {"twin: nobody knows how it came", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 14000,
     .torch = 1000, .ask = 3000 * MIB, .by = SITE_NCCL},
    {"the leaking line itself fails", IS(LEAK, LIKELY), .app = 14000, .torch = 1000,
     .course = COURSE_LEAK, .ask = 3000 * MIB, .by = SITE_APP},
    {"twin: a neighbour has the memory that is missing", IS(EXHAUSTED_BY_OTHERS, PROVEN),
     .app = 3000, .torch = 1000, .others = 11000, .course = COURSE_LEAK, .ask = 8000 * MIB,
     .by = SITE_APP},
    {"twin: a small neighbour would do for this request", IS(LEAK, LIKELY), .app = 14400,
     .torch = 600, .others = 600, .course = COURSE_LEAK, .ask = 500 * MIB, .by = SITE_NCCL,
     .says = "train.py:88 load_batch keeps more and more", .says_too = "Other processes hold 600",
     .advises = "Look at train.py:88", .next = GOS_VERDICT_EXHAUSTED_BY_OTHERS},
    {"twin: so would memory that nobody shows", IS(LEAK, LIKELY), .app = 14400, .torch = 600,
     .hidden = 600, .course = COURSE_LEAK, .ask = 500 * MIB, .by = SITE_NCCL,
     .next = GOS_VERDICT_EXHAUSTED_BY_OTHERS},
    {"twin: so would half-empty blocks", IS(LEAK, LIKELY), .app = 14000, .torch = 600,
     .pieces = 600, .course = COURSE_LEAK, .ask = 500 * MIB, .by = SITE_NCCL,
     .advises = "Look at train.py:88", .next = GOS_VERDICT_FRAGMENTED},
    {"twin: so would pieces of a pool", IS(LEAK, LIKELY), .app = 14000, .torch = 500,
     .pool_live = 400, .pool_idle = 900, .course = COURSE_LEAK, .ask = 800 * MIB, .by = SITE_NCCL,
     .next = GOS_VERDICT_FRAGMENTED},
    {"twin: half-empty blocks are most of it", IS(FRAGMENTED, PROVEN), .app = 3000, .pieces = 6000,
     .course = COURSE_LEAK, .ask = 3000 * MIB, .by = SITE_NCCL,
     .says = "train.py:88 load_batch keeps more and more"},
    {"twin: a pool that is trimmed would do, for now", IS(CACHE_HELD, PROVEN), .app = 14000,
     .torch = 500, .pool2_idle = 900, .course = COURSE_LEAK, .ask = 800 * MIB, .by = SITE_NCCL,
     .says = "train.py:88 load_batch keeps more and more", .advises = "Free it, or bound it",
     .next = GOS_VERDICT_LEAK},
    {"twin: two lines grow alike", IS(EXHAUSTED_BY_PROCESS, LIKELY), .app = 7000, .torch = 7000,
     .course = COURSE_TOGETHER, .ask = 3000 * MIB, .by = SITE_TORCH, .says = "many lines"},

    /* --- a framework's own word --- */
    {"torch says it has whole segments to spare", IS(CACHE_HELD, PROVEN), .torch = 15360,
     .torch_unused = 12288, .ask = 1024 * MIB, .by = SITE_NCCL, .says = "torch"},
    {"twin: it says they are in pieces", IS(FRAGMENTED, LIKELY), .torch = 15360,
     .torch_unused = 15300, .torch_pieces = 15300, .ask = 1024 * MIB, .by = SITE_TORCH,
     .advises = "expandable_segments"},
    {"twin: few pieces, after growth that would have been through them",
     IS(EXHAUSTED_BY_PROCESS, LIKELY), .torch = 15360, .torch_unused = 1020, .torch_pieces = 1020,
     .course = COURSE_TORCH, .ask = 1000 * MIB, .by = SITE_TORCH, .says = "grew steadily",
     .says_too = "would have lasted for about 159 more allocations.", .advises = "keep all that?",
     .next = GOS_VERDICT_FRAGMENTED},
    {"twin: many pieces, after the same growth", IS(FRAGMENTED, LIKELY), .torch = 15360,
     .torch_unused = 5100, .torch_pieces = 5100, .course = COURSE_TORCH, .ask = 1000 * MIB,
     .by = SITE_TORCH, .advises = "expandable_segments"},
    {"twin: few pieces, and it had stopped growing", IS(FRAGMENTED, LIKELY), .torch = 15360,
     .torch_unused = 1020, .torch_pieces = 1020, .course = COURSE_FLAT, .ask = 1000 * MIB,
     .by = SITE_TORCH, .advises = "expandable_segments"},
    {"twin: it says it uses nearly all", IS(EXHAUSTED_BY_PROCESS, PROVEN), .torch = 15360,
     .torch_unused = 64, .ask = 1024 * MIB, .by = SITE_NCCL},
    {"twin: in pieces, with expandable segments on already", IS(FRAGMENTED, LIKELY), .torch = 15360,
     .torch_unused = 15300, .torch_pieces = 15300, .ask = 1024 * MIB, .by = SITE_TORCH,
     .variable = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
     .never_advises = "expandable_segments:True"},

    /* --- rehearsals --- */
    {"an injected failure on an empty device", IS(INJECTED, PROVEN), .ask = 64 * MIB,
     .injected = true, .by = SITE_APP},
    {"twin: the driver itself", IS(UNEXPLAINED, POSSIBLE), .ask = 64 * MIB, .by = SITE_APP},
    {"an injected failure on a full device", IS(INJECTED, PROVEN), .app = 15800, .ask = 1024 * MIB,
     .injected = true, .by = SITE_APP},
    {"twin: the driver itself, full", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 15800,
     .ask = 1024 * MIB, .by = SITE_APP},
    {"twin: full by a limit", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 15800, .ask = 1024 * MIB,
     .limited = true, .by = SITE_APP},

    /* --- cache and live --- */
    {"cupy_keeps_what_nccl_needs: torch's cache, an own library asks", IS(CACHE_HELD, POSSIBLE),
     .torch = 14000, .ask = 3000 * MIB, .by = SITE_APP},
    {"twin: the same bytes are the program's own", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 14000,
     .ask = 3000 * MIB, .by = SITE_APP},
    {"twin: the stacks that were kept do not show whose they are", IS(EXHAUSTED_BY_PROCESS, LIKELY),
     .unseen = 14000, .ask = 3000 * MIB, .by = SITE_APP, .says = "do not show which library"},
    {"twin: those are less than what is missing", IS(EXHAUSTED_BY_PROCESS, PROVEN), .unseen = 500,
     .app = 13500, .ask = 3000 * MIB, .by = SITE_APP},
    {"twin: the cache asks for itself", IS(EXHAUSTED_BY_PROCESS, LIKELY), .torch = 14000,
     .ask = 3000 * MIB, .by = SITE_TORCH},
    {"cache too small for the request, neighbour large enough", IS(EXHAUSTED_BY_OTHERS, PROVEN),
     .torch = 1000, .others = 12000, .ask = 6000 * MIB, .by = SITE_NCCL},
    {"twin: neighbour small, cache large enough", IS(CACHE_HELD, POSSIBLE), .torch = 12000,
     .others = 1000, .ask = 6000 * MIB, .by = SITE_NCCL},

    /* --- pools --- */
    {"idle in a pool that is not asked", IS(CACHE_HELD, PROVEN), .pool2_idle = 10000, .app = 4000,
     .ask = 4096 * MIB, .by = SITE_NCCL},
    {"twin: live in that pool", IS(EXHAUSTED_BY_PROCESS, PROVEN), .pool_live = 10000, .app = 4000,
     .ask = 4096 * MIB, .by = SITE_NCCL},
    {"twin: freed there, still waiting", IS(PENDING_FREE, PROVEN), .pool_pending = 10000,
     .app = 4000, .ask = 4096 * MIB, .by = SITE_NCCL},
    {"twin: freed by cuMemFree and on a stream, and back: only counts say otherwise",
     IS(EXHAUSTED_BY_PROCESS, PROVEN), .pool_stale = 4096, .pending_seen = 4096, .app = 15616,
     .ask = 1024 * MIB, .by = SITE_NCCL, .says = "holds 15.25 GiB in use, most of it"},
    {"twin: a count that sticks is no proof of what is pending", IS(PENDING_FREE, LIKELY),
     .pool_pending = 10000, .pool_stale = 10000, .app = 4000, .ask = 4096 * MIB, .by = SITE_NCCL},
    {"twin: nor does it hide what lies idle", IS(CACHE_HELD, LIKELY), .pool2_idle = 5000,
     .pool_idle = 5000, .pool_stale = 5000, .app = 4000, .ask = 8192 * MIB, .by = SITE_NCCL},
    {"twin: idle, but too little", IS(EXHAUSTED_BY_PROCESS, PROVEN), .pool2_idle = 1000,
     .app = 13000, .ask = 4096 * MIB, .by = SITE_NCCL,
     .says = "(12.70 GiB), and 1000.0 MiB unused."},
    {"twin: idle, but too little, and nothing else", IS(EXHAUSTED_BY_PROCESS, LIKELY),
     .pool2_idle = 3000, .others = 2000, .ask = 14800 * MIB, .by = SITE_APP,
     .says = "this process itself holds 2.93 GiB unused."},
    {"twin: idle there, between live buffers", IS(FRAGMENTED, LIKELY), .pool_idle = 8000,
     .pool_live = 2000, .app = 4000, .ask = 4096 * MIB, .by = SITE_NCCL,
     .says = "between live buffers"},
    {"pending is enough", IS(PENDING_FREE, PROVEN), .pool_pending = 4004, .app = 11868,
     .ask = 4000 * MIB, .by = SITE_APP},
    {"twin: to the byte, and the last few MiB cannot be had", IS(PENDING_FREE, LIKELY),
     .pool_pending = 4000, .app = 11872, .ask = 4000 * MIB, .by = SITE_APP},
    {"twin: somebody unseen may use the other pool", IS(CACHE_HELD, LIKELY), .pool_pending = 2000,
     .pool2_idle = 4000, .pool2_foreign = 1000, .app = 8872, .ask = 5000 * MIB, .by = SITE_APP},
    {"twin: pending is short by one block", IS(EXHAUSTED_BY_PROCESS, PROVEN), .pool_pending = 4000,
     .says = "(11.59 GiB), and 3.91 GiB freed but not back yet.", .app = 11872, .ask = 4002 * MIB,
     .by = SITE_APP},
    {"own pool in pieces", IS(FRAGMENTED, LIKELY), .pool_idle = 5000, .pool_live = 9000,
     .ask = 3000 * MIB, .kind = GOS_KIND_POOL, .by = SITE_APP},
    {"twin: own pool full", IS(EXHAUSTED_BY_PROCESS, PROVEN), .pool_live = 14000, .ask = 3000 * MIB,
     .kind = GOS_KIND_POOL, .by = SITE_APP},
    {"idle graph memory", IS(CACHE_HELD, LIKELY), .graph_idle = 9000, .app = 6000,
     .ask = 4000 * MIB, .by = SITE_APP},

    /* --- blocks --- */
    {"half-empty blocks hold what is missing", IS(FRAGMENTED, PROVEN), .pieces = 7000, .app = 1800,
     .ask = 1024 * MIB, .by = SITE_APP},
    {"twin: the map lacks allocations, so nothing is proven", IS(FRAGMENTED, LIKELY),
     .pieces = 7000, .smalls_lost = 100000, .app = 1800, .ask = 1024 * MIB, .by = SITE_APP,
     .says = "lacks 100000 small allocations"},
    {"twin: the same bytes live in whole blocks", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 15800,
     .ask = 1024 * MIB, .by = SITE_APP},

    /* --- others, hidden, own --- */
    {"a context finds no room beside a neighbour", IS(EXHAUSTED_BY_OTHERS, LIKELY), .others = 15500,
     .unsized = true, .makes_context = true, .by = SITE_APP},
    {"twin: a kernel would have found it", IS(UNEXPLAINED, POSSIBLE), .others = 15500,
     .unsized = true, .by = SITE_APP},
    {"a child holds it", IS(EXHAUSTED_BY_OTHERS, PROVEN), .children = 9000, .app = 3000,
     .ask = 8000 * MIB, .by = SITE_APP, .says = "child processes"},
    {"twin: a child and a neighbour hold it together", IS(EXHAUSTED_BY_OTHERS, PROVEN),
     .children = 5000, .others = 4000, .app = 6000, .ask = 8000 * MIB, .by = SITE_APP,
     .says = "8.79 GiB are outside of this process (own children 4.88 GiB, other processes 3.91 "
             "GiB); without that the request would fit."},
    {"twin: this process holds most of it, nobody else enough by itself", IS(LEAK, LIKELY),
     .app = 14400, .others = 350, .hidden = 300, .course = COURSE_LEAK, .ask = 1400 * MIB,
     .by = SITE_NCCL,
     .says = "650.0 MiB are outside of this process (other processes 350.0 MiB, hidden 300.0 MiB): "
             "without that this request would have fitted.",
     .next = GOS_VERDICT_EXHAUSTED_BY_OTHERS},
    {"twin: all of them together have too little", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 12000,
     .others = 300, .hidden = 300, .ask = 8000 * MIB, .by = SITE_APP,
     .says = "Only 600.0 MiB are outside of this process (other processes 300.0 MiB, hidden 300.0 "
             "MiB)."},
    {"twin: this process holds it", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 12000,
     .ask = 8000 * MIB, .by = SITE_APP},
    {"twin: this process holds most of it, a small neighbour would do",
     IS(EXHAUSTED_BY_PROCESS, LIKELY), .others = 812, .app = 14900, .ask = 700 * MIB,
     .by = SITE_APP, .says = "Other processes hold 812", .advises = "Begin with train.py:88",
     .next = GOS_VERDICT_EXHAUSTED_BY_OTHERS},
    {"twin: both hold about the same", IS(EXHAUSTED_BY_OTHERS, PROVEN), .others = 7936, .app = 7424,
     .ask = 700 * MIB, .by = SITE_APP, .next = GOS_VERDICT_EXHAUSTED_BY_PROCESS},
    {"twin: a cache holds most of it", IS(CACHE_HELD, POSSIBLE), .others = 812, .torch = 14900,
     .ask = 700 * MIB, .by = SITE_NCCL, .next = GOS_VERDICT_EXHAUSTED_BY_OTHERS},
    {"twin: nobody that is visible holds it", IS(EXHAUSTED_BY_OTHERS, LIKELY), .hidden = 9000,
     .app = 3000, .ask = 8000 * MIB, .by = SITE_APP},
    {"twin: it is our own context, and no process is listed", IS(EXHAUSTED_BY_PROCESS, LIKELY),
     .context = 2000, .app = 14336, .ask = 64 * MIB, .by = SITE_APP, .view = VIEW_NO_LIST},
    {"twin: all but this one are listed", IS(EXHAUSTED_BY_PROCESS, LIKELY), .context = 2000,
     .app = 14336, .ask = 64 * MIB, .by = SITE_APP, .view = VIEW_NOT_LISTED},
    {"twin: pids without numbers", IS(EXHAUSTED_BY_PROCESS, LIKELY), .context = 2000, .app = 14336,
     .ask = 64 * MIB, .by = SITE_APP, .view = VIEW_NO_NUMBERS},
    {"twin: no NVML", IS(EXHAUSTED_BY_PROCESS, LIKELY), .context = 2000, .app = 14336,
     .ask = 64 * MIB, .by = SITE_APP, .view = VIEW_NONE},
    {"twin: NVML refuses", IS(EXHAUSTED_BY_PROCESS, LIKELY), .context = 2000, .app = 14336,
     .ask = 64 * MIB, .by = SITE_APP, .view = VIEW_FORBIDDEN},
    {"twin: the same, and it leaks", IS(LEAK, LIKELY), .context = 2000, .app = 14336,
     .course = COURSE_LEAK, .ask = 64 * MIB, .by = SITE_APP, .view = VIEW_FORBIDDEN},
    {"twin: everything is listed", IS(EXHAUSTED_BY_PROCESS, PROVEN), .context = 2000, .app = 14336,
     .ask = 64 * MIB, .by = SITE_APP, .says = "1.95 GiB of this process are contexts",
     .advises = "cudaDeviceSetLimit"},
    {"twin: most is context, and nothing shows it", IS(EXHAUSTED_BY_OTHERS, LIKELY),
     .context = 15000, .app = 1344, .ask = 64 * MIB, .by = SITE_APP, .view = VIEW_NONE,
     .says = "or this process' own context and modules", .advises = "cudaDeviceSetLimit"},
    {"twin: most is context, as NVML shows", IS(EXHAUSTED_BY_PROCESS, PROVEN), .context = 15000,
     .app = 1344, .ask = 64 * MIB, .by = SITE_APP,
     .says = "holds 14.65 GiB in contexts, modules and what else no call allocates, and 1.31 GiB",
     .advises = "cudaDeviceSetLimit"},
    {"twin: all is context", IS(EXHAUSTED_BY_PROCESS, PROVEN), .context = 16340, .first = true,
     .ask = 64 * MIB, .by = SITE_APP, .says = "holds 15.96 GiB in contexts",
     .says_too = "first allocation"},
    {"an MPS server is charged with our own memory", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 12000,
     .mps_server = 12512, .ask = 8000 * MIB, .by = SITE_APP, .view = VIEW_NOT_LISTED},
    {"twin: the server holds other clients' memory", IS(EXHAUSTED_BY_OTHERS, LIKELY), .app = 1000,
     .mps_server = 13512, .ask = 8000 * MIB, .by = SITE_APP, .view = VIEW_NOT_LISTED},
    {"an integrated GPU: the host's programs have it", IS(HOST_MEMORY, LIKELY), .hidden = 10000,
     .integrated = true, .app = 1000, .ask = 8000 * MIB, .by = SITE_APP, .view = VIEW_NONE,
     .says = "shares the host's memory"},
    {"twin: a card of its own", IS(EXHAUSTED_BY_OTHERS, LIKELY), .hidden = 10000, .app = 1000,
     .ask = 8000 * MIB, .by = SITE_APP, .view = VIEW_NONE},
    {"twin: integrated, but the process itself has more", IS(EXHAUSTED_BY_PROCESS, LIKELY),
     .hidden = 1200, .integrated = true, .app = 14000, .ask = 800 * MIB, .by = SITE_APP,
     .view = VIEW_NONE},
    {"twin: integrated, but the process itself has it", IS(EXHAUSTED_BY_PROCESS, PROVEN),
     .integrated = true, .app = 12000, .ask = 8000 * MIB, .by = SITE_APP},

    /* --- sizes --- */
    {"one block more than the device", IS(REQUEST_TOO_LARGE, PROVEN), .ask = 16386 * MIB,
     .by = SITE_APP},
    {"twin: the whole device, which a context shares", IS(REQUEST_TOO_LARGE, LIKELY),
     .ask = 16384 * MIB, .by = SITE_APP},
    {"twin: half the device, which a large context shares", IS(REQUEST_TOO_LARGE, LIKELY),
     .context = 9000, .ask = 8192 * MIB, .by = SITE_APP},
    {"twin: less than half of it", IS(EXHAUSTED_BY_PROCESS, PROVEN), .context = 9000,
     .ask = 8190 * MIB, .by = SITE_APP},
    {"twin: what a context leaves, beside own memory", IS(EXHAUSTED_BY_PROCESS, PROVEN), .app = 512,
     .ask = 15872 * MIB, .by = SITE_APP},

    /* --- limits --- */
    {"MPS limits this client", IS(POLICY_LIMIT, LIKELY), .app = 3000, .ask = 2000 * MIB,
     .variable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G", .by = SITE_APP},
    {"twin: no limit", IS(UNEXPLAINED, POSSIBLE), .app = 3000, .ask = 2000 * MIB, .by = SITE_APP},
    {"twin: the limit is large enough", IS(UNEXPLAINED, POSSIBLE), .app = 3000, .ask = 2000 * MIB,
     .variable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8G", .by = SITE_APP},
    {"twin: the limit was set too late", IS(UNEXPLAINED, POSSIBLE), .app = 3000, .ask = 2000 * MIB,
     .variable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G", .variable_late = true, .by = SITE_APP},
    {"MPS takes no more connections", IS(POLICY_LIMIT, PROVEN), .ask = MIB, .result = 809,
     .by = SITE_APP},
    {"RLIMIT_AS leaves less than is asked", IS(HOST_LIMIT, PROVEN), .ask = 4096 * MIB,
     .address_room = 4000, .by = SITE_APP},
    {"twin: RLIMIT_AS leaves enough", IS(UNEXPLAINED, POSSIBLE), .ask = 4096 * MIB,
     .address_room = 4200, .by = SITE_APP},
    {"pinned memory beyond the cgroup", IS(HOST_LIMIT, LIKELY), .ask = 4096 * MIB,
     .kind = GOS_KIND_HOST, .cgroup_room = 4000, .by = SITE_APP},
    {"twin: within the cgroup", IS(UNEXPLAINED, POSSIBLE), .ask = 4096 * MIB, .kind = GOS_KIND_HOST,
     .cgroup_room = 4200, .by = SITE_APP},
    {"pinned memory beyond RLIMIT_MEMLOCK", IS(HOST_LIMIT, POSSIBLE), .ask = 4096 * MIB,
     .kind = GOS_KIND_HOST, .locked_room = 64, .by = SITE_APP, .says = "RLIMIT_MEMLOCK"},
    {"twin: device memory is not locked", IS(UNEXPLAINED, POSSIBLE), .ask = 4096 * MIB,
     .locked_room = 64, .by = SITE_APP},
    {"the system promises no more", IS(HOST_LIMIT, LIKELY), .ask = 4096 * MIB,
     .kind = GOS_KIND_HOST, .commit_room = 1000, .by = SITE_APP, .says = "overcommit"},
    {"twin: it does", IS(UNEXPLAINED, POSSIBLE), .ask = 4096 * MIB, .kind = GOS_KIND_HOST,
     .commit_room = 5000, .by = SITE_APP},

    /* --- host and device --- */
    {"managed memory larger than both sides", IS(HOST_MEMORY, LIKELY), .ask = 24000 * MIB,
     .total = 16384, .kind = GOS_KIND_MANAGED, .host_available = 6000, .by = SITE_APP},
    {"twin: the host has room for it", IS(REQUEST_TOO_LARGE, PROVEN), .ask = 24000 * MIB,
     .kind = GOS_KIND_DEVICE, .host_available = 60000, .by = SITE_APP},
    {"pinned memory, host short, device empty", IS(HOST_MEMORY, LIKELY), .ask = 8192 * MIB,
     .kind = GOS_KIND_HOST, .host_available = 6144, .by = SITE_APP},
    {"twin: host fine, device short", IS(EXHAUSTED_BY_PROCESS, PROVEN), .ask = 8192 * MIB,
     .app = 9000, .by = SITE_APP},
    {"twin: both short, device asked", IS(EXHAUSTED_BY_PROCESS, PROVEN), .ask = 8192 * MIB,
     .app = 9000, .host_available = 6144, .by = SITE_APP},

    /* --- forked and not, capture and not --- */
    {"a fork's child asks", IS(FORKED, PROVEN), .ask = MIB, .result = 3, .forked = true,
     .by = SITE_APP},
    {"a fork's child gets another code", IS(FORKED, LIKELY), .ask = MIB, .result = 201,
     .forked = true, .by = SITE_APP},
    {"twin: not forked, no context", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = MIB, .result = 201,
     .by = SITE_APP},
    {"the stream captures", IS(IN_CAPTURE, PROVEN), .ask = 8000 * MIB, .app = 15000, .result = 900,
     .capture = GOS_CAPTURE_THIS_STREAM, .by = SITE_APP},
    {"another thread captures", IS(IN_CAPTURE, PROVEN), .ask = MIB, .result = 901,
     .capture = GOS_CAPTURE_ELSEWHERE, .by = SITE_APP},
    {"the capture depends on the legacy stream", IS(IN_CAPTURE, PROVEN), .ask = MIB, .result = 906,
     .capture = GOS_CAPTURE_ELSEWHERE, .by = SITE_APP, .says = "legacy stream",
     .advises = "thread-local"},
    {"torch asks in a capture", IS(IN_CAPTURE, PROVEN), .ask = MIB, .result = 900,
     .capture = GOS_CAPTURE_THIS_STREAM, .by = SITE_TORCH, .advises = "torch.cuda.graph()"},
    {"twin: captures, but it is memory", IS(EXHAUSTED_BY_PROCESS, PROVEN), .ask = 8000 * MIB,
     .app = 15000, .capture = GOS_CAPTURE_THIS_STREAM, .by = SITE_APP},

    /* --- versions --- */
    {"kernel module and libcuda differ", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = MIB, .result = 803,
     .libcuda = LIBCUDA, .kernel = "575.57.08", .by = SITE_APP, .says = LIBCUDA,
     .says_too = "575.57.08", .advises = "Reload the kernel module"},
    {"a compat package on a device that does not support it", IS(DRIVER_OR_CONTEXT, PROVEN),
     .ask = MIB, .result = 804, .libcuda = COMPAT, .kernel = "535.104.05", .by = SITE_APP,
     .says = "forward-compatibility libcuda was loaded: " COMPAT, .advises = "cuda-compat"},
    {"the driver is too old for the runtime", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = MIB,
     .result = 35, .libcuda = LIBCUDA, .kernel = "535.104.05", .cudart = "13.0.96",
     .driver_version = 12020, .by = SITE_APP, .says = "at least 580",
     .advises = "Update the driver to 580 or newer, or use a build for CUDA 12"},
    {"the first allocation fails with room, and versions do not fit", IS(DRIVER_OR_CONTEXT, LIKELY),
     .first = true, .ask = 1000 * MIB, .cudart = "13.0.96", .driver_version = 12020, .by = SITE_APP,
     .says = "first allocation"},
    {"twin: versions fit", IS(UNEXPLAINED, POSSIBLE), .first = true, .ask = 1000 * MIB,
     .cudart = "13.0.96", .driver_version = 13000, .by = SITE_APP},
    {"twin: not the first", IS(UNEXPLAINED, POSSIBLE), .ask = 1000 * MIB, .cudart = "13.0.96",
     .driver_version = 12020, .app = 100, .by = SITE_APP, .advises = "Update the driver"},
    {"twin: no room, so versions are not the reason", IS(EXHAUSTED_BY_OTHERS, PROVEN),
     .first = true, .others = 15000, .ask = 1000 * MIB, .cudart = "13.0.96",
     .driver_version = 12020, .by = SITE_APP},
    {"a kernel broke the context", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = 8000 * MIB, .app = 15000,
     .result = 719, .by = SITE_APP, .says = "The context is lost", .says_too = "A kernel"},
    {"the device's memory broke", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = MIB, .result = 214,
     .by = SITE_APP, .says = "could not correct"},
    {"the device is busy", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = 8000 * MIB, .app = 15000,
     .result = 46, .by = SITE_APP, .says = "exclusive mode", .advises = "compute mode"},
    {"a host function asks", IS(DRIVER_OR_CONTEXT, PROVEN), .ask = MIB, .result = 800,
     .by = SITE_APP, .says = "cudaLaunchHostFunc", .advises = "thread of the program"},
    {"twin: none did", IS(EXHAUSTED_BY_PROCESS, PROVEN), .ask = 8000 * MIB, .app = 15000,
     .by = SITE_APP},
};
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

static struct {
    unsigned given[GOS_VERDICT_COUNT][GOS_VERDICT_COUNT]; /* [right][given] */
    unsigned wrong, wrong_and_proven, wrong_in_confidence, wrong_in_words;
} matrix;

static bool words_are_right(const struct scene *scene, const struct gos_verdict *verdict)
{
    return (!scene->says || verdict_says(verdict, scene->says)) &&
           (!scene->says_too || verdict_says(verdict, scene->says_too)) &&
           (!scene->advises || verdict_advises(verdict, scene->advises)) &&
           (!scene->next || (verdict->has_runner_up && verdict->runner_up == scene->next)) &&
           verdict->summary[0] && verdict->advice_count > 0;
}

static void show(const struct scene *scene, const struct gos_verdict *verdict)
{
    printf("| wrong: %s\n|   %s (%s), right is %s (%s): %s\n", scene->name,
           gos_verdict_code(verdict->code), gos_confidence_code(verdict->confidence),
           gos_verdict_code(scene->code), gos_confidence_code(scene->confidence), verdict->summary);
    for (size_t i = 0; i < verdict->evidence_count; i++)
        printf("|   . %s\n", verdict->evidence[i]);
    for (size_t i = 0; i < verdict->advice_count; i++)
        printf("|   > %s\n", verdict->advice[i]);
}

static void judge(const struct scene *scene)
{
    static struct gos_evidence evidence;
    static struct gos_diagnosis diagnosis;
    scene_evidence(scene, &evidence);
    gos_diagnose(&evidence, &diagnosis);
    const struct gos_verdict *verdict = &diagnosis.verdict;
    bool wrong = verdict->code != scene->code;
    bool other_confidence = verdict->confidence != scene->confidence;
    bool other_words = !words_are_right(scene, verdict);
    matrix.given[scene->code][verdict->code]++;
    matrix.wrong += wrong;
    matrix.wrong_and_proven += wrong && verdict->confidence == GOS_CONFIDENCE_PROVEN;
    matrix.wrong_in_confidence += !wrong && other_confidence;
    matrix.wrong_in_words += !wrong && other_words;
    if (wrong || other_confidence || other_words)
        show(scene, verdict);
    gos_scratch_release(&evidence.scratch);
}

static void print_row(int right)
{
    printf("| %2d %-21s", right, gos_verdict_code((enum gos_verdict_code)right));
    for (int given = 0; given < GOS_VERDICT_COUNT; given++)
        if (matrix.given[right][given])
            printf("%3u", matrix.given[right][given]);
        else
            printf("  .");
    printf("\n");
}

static void print_matrix(void)
{
    printf("| verdicts, right (rows) by given (columns): %zu cases, %u wrong, %u of them proven\n",
           CASE_COUNT, matrix.wrong, matrix.wrong_and_proven);
    printf("| %-24s", "");
    for (int given = 0; given < GOS_VERDICT_COUNT; given++)
        printf("%3d", given);
    printf("\n");
    for (int right = 0; right < GOS_VERDICT_COUNT; right++)
        print_row(right);
    fflush(stdout);
}

static int judge_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++)
        judge(&cases[i]);
    print_matrix();
    return 0;
}

static void no_verdict_is_wrong(void **state)
{
    (void)state;
    assert_int_equal(matrix.wrong, 0);
}

static void nothing_wrong_is_called_proven(void **state)
{
    (void)state;
    assert_int_equal(matrix.wrong_and_proven, 0);
}

static void confidence_and_words_are_right(void **state)
{
    (void)state;
    assert_int_equal(matrix.wrong_in_confidence, 0);
    assert_int_equal(matrix.wrong_in_words, 0);
}

static void each_verdict_has_two_cases(void **state)
{
    (void)state;
    for (int right = 0; right < GOS_VERDICT_COUNT; right++) {
        unsigned count = 0;
        for (size_t i = 0; i < CASE_COUNT; i++)
            count += (int)cases[i].code == right;
        if (count < 2)
            fail_msg("%s has %u cases", gos_verdict_code((enum gos_verdict_code)right), count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_verdict_is_wrong),
        cmocka_unit_test(nothing_wrong_is_called_proven),
        cmocka_unit_test(confidence_and_words_are_right),
        cmocka_unit_test(each_verdict_has_two_cases),
    };
    return cmocka_run_group_tests(tests, judge_all, NULL);
}
