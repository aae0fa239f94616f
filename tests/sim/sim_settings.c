#include "sim_settings.h"

#include <stdlib.h>
#include <string.h>

struct sim_settings sim_settings;

static uint64_t read_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || *text < '0' || *text > '9')
        return fallback;
    unsigned long long value = strtoull(text, &end, 0);
    return *end == '\0' ? value : fallback;
}

static uint64_t read_mib(const char *name, uint64_t fallback)
{
    return read_number(name, fallback) * SIM_MIB;
}

static const char *read_path(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strdup(text) : NULL;
}

static enum sim_nvml_view read_view(void)
{
    static const char *const names[] = {"full",   "own",        "empty", "forbidden",
                                        "absent", "numberless", "mig"};
    const char *text = getenv("GPUSIM_NVML");
    for (unsigned i = 0; text != NULL && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(text, names[i]) == 0)
            return (enum sim_nvml_view)i;
    return SIM_NVML_FULL;
}

/* One rule, "symbol:result[:nth]"; anything else is left out. */
static void add_failure(const char *rule)
{
    struct sim_failure *failure = &sim_settings.failures[sim_settings.failure_count];
    const char *colon = strchr(rule, ':');
    char *end = NULL;
    if (sim_settings.failure_count == SIM_FAILURES_MAX || colon == NULL)
        return;
    size_t length = (size_t)(colon - rule);
    if (length == 0 || length >= sizeof(failure->symbol))
        return;
    memcpy(failure->symbol, rule, length);
    failure->symbol[length] = '\0';
    failure->result = (int)strtol(colon + 1, &end, 10);
    failure->nth = *end == ':' ? strtoull(end + 1, NULL, 10) : 0;
    sim_settings.failure_count++;
}

static void read_failures(void)
{
    const char *text = getenv("GPUSIM_FAIL");
    char *copy = text != NULL ? strdup(text) : NULL;
    char *rest = NULL;
    if (copy == NULL)
        return;
    for (char *rule = strtok_r(copy, ",", &rest); rule != NULL; rule = strtok_r(NULL, ",", &rest))
        add_failure(rule);
    free(copy);
}

/* "symbol[:nth]" */
static void read_kill(void)
{
    const char *text = getenv("GPUSIM_KILL");
    size_t length = text != NULL ? strcspn(text, ":") : 0;
    if (length == 0 || length >= sizeof(sim_settings.kill.symbol))
        return;
    memcpy(sim_settings.kill.symbol, text, length);
    sim_settings.kill.nth = text[length] == ':' ? strtoull(text + length + 1, NULL, 10) : 1;
}

static int read_device_count(void)
{
    uint64_t count = read_number("GPUSIM_DEVICES", 1);
    return count <= SIM_DEVICES_MAX ? (int)count : SIM_DEVICES_MAX;
}

static bool loads_eagerly(void)
{
    const char *mode = getenv("CUDA_MODULE_LOADING");
    return mode != NULL && strcmp(mode, "EAGER") == 0;
}

__attribute__((constructor)) void sim_settings_load(void)
{
    static bool loaded;
    if (loaded)
        return;
    loaded = true;
    sim_settings.memory_bytes = read_mib("GPUSIM_MEMORY", 16384);
    sim_settings.context_bytes = read_mib("GPUSIM_CONTEXT", 512);
    sim_settings.reserved_bytes = read_mib("GPUSIM_RESERVED", 600);
    sim_settings.module_bytes = read_mib("GPUSIM_MODULE", 2);
    sim_settings.local_bytes = read_number("GPUSIM_LOCAL", 0);
    sim_settings.host_bytes = read_mib("GPUSIM_HOST_MEMORY", 0);
    sim_settings.call_us = read_number("GPUSIM_CALL_TIME", 0);
    sim_settings.refuse_us = read_number("GPUSIM_REFUSE_TIME", 0);
    sim_settings.free_waits = read_number("GPUSIM_FREE_WAITS", 0) != 0;
    sim_settings.device_count = read_device_count();
    sim_settings.driver_version = (int)read_number("GPUSIM_DRIVER_VERSION", 13000);
    sim_settings.zero_cost = read_number("GPUSIM_ZERO_COST", 0) != 0;
    sim_settings.integrated = read_number("GPUSIM_INTEGRATED", 0) != 0;
    sim_settings.mps_server_pid = (int)read_number("GPUSIM_MPS_SERVER", 0);
    sim_settings.eager_loading = loads_eagerly();
    sim_settings.nvml = read_view();
    sim_settings.state_path = read_path("GPUSIM_STATE");
    sim_settings.trace_path = read_path("GPUSIM_TRACE");
    read_failures();
    read_kill();
}
