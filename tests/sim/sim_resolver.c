/*
 * cuGetProcAddress: from a base name, a version and a stream flag to the symbol.
 *
 * The pointer given is the one that dlsym gives for the versioned name [H200].
 * The table's versions and the signatures of all entry points are checked at
 * compile time against the PFN_ types of cudaTypedefs.h.
 */

#include <string.h>

#include "sim_call.h"

enum stream_kind { ANY, LEGACY, PER_THREAD };

struct entry {
    const char *base;
    void (*function)(void);
    int version;
    enum stream_kind stream;
};

#define SIM_ENTRY(symbol, base, version, stream)                                                   \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), PFN_##base##_v##version),     \
                   #symbol);
#define SIM_PAIR(symbol, base, version, twin_version, suffix)                                      \
    SIM_ENTRY(symbol, base, version, LEGACY)                                                       \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol##_##suffix),                    \
                                                PFN_##base##_v##twin_version##_##suffix),          \
                   #symbol "_" #suffix);
#include "sim_entries.def"
#undef SIM_ENTRY
#undef SIM_PAIR

static const struct entry entries[] = {
#define SIM_ENTRY(symbol, base, version, stream) {#base, (void (*)(void))symbol, version, stream},
#define SIM_PAIR(symbol, base, version, twin_version, suffix)                                      \
    {#base, (void (*)(void))symbol, version, LEGACY},                                              \
        {#base, (void (*)(void))symbol##_##suffix, version, PER_THREAD},
#include "sim_entries.def"
#undef SIM_ENTRY
#undef SIM_PAIR
};

static bool fits(const struct entry *entry, cuuint64_t flags)
{
    if (entry->stream == ANY)
        return true;
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    return entry->stream == (per_thread ? PER_THREAD : LEGACY);
}

/* The newest ABI that is not newer than `version`; *known tells the reasons for NULL apart. */
static const struct entry *find(const char *base, int version, cuuint64_t flags, bool *known)
{
    const struct entry *best = NULL;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        const struct entry *entry = &entries[i];
        if (strcmp(entry->base, base) != 0 || !fits(entry, flags))
            continue;
        *known = true;
        if (entry->version <= version && (best == NULL || entry->version > best->version))
            best = entry;
    }
    return best;
}

/* Newer versions than the driver's own are refused, whatever the name [H200]. */
static bool is_valid(const char *base, void **out, int version, cuuint64_t flags)
{
    const cuuint64_t known_flags =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return base != NULL && out != NULL && version <= sim_settings.driver_version &&
           (flags & ~known_flags) == 0;
}

/* The first ABI leaves *out alone when there is nothing to give [H200]. */
static CUresult resolve_or_fail(const char *base, void **out, int version, cuuint64_t flags)
{
    bool known = false;
    if (!is_valid(base, out, version, flags))
        return CUDA_ERROR_INVALID_VALUE;
    const struct entry *entry = find(base, version, flags, &known);
    if (entry == NULL)
        return CUDA_ERROR_NOT_FOUND;
    memcpy(out, &entry->function, sizeof(*out));
    return CUDA_SUCCESS;
}

/* The second one succeeds, gives NULL, and says why in *status [H200]. */
static CUresult resolve(const char *base, void **out, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    bool known = false;
    if (!is_valid(base, out, version, flags))
        return CUDA_ERROR_INVALID_VALUE;
    const struct entry *entry = find(base, version, flags, &known);
    *out = NULL;
    if (entry != NULL)
        memcpy(out, &entry->function, sizeof(*out));
    if (status != NULL)
        *status = entry != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known       ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *base, void **out, int version, cuuint64_t flags)
{
    return SIM_CALL(cuGetProcAddress, SIM_ANYTIME, resolve_or_fail(base, out, version, flags));
}

CUresult cuGetProcAddress_v2(const char *base, void **out, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    return SIM_CALL(cuGetProcAddress_v2, SIM_ANYTIME, resolve(base, out, version, flags, status));
}
