#include "setting.h"

#include <stddef.h>
#include <string.h>

#include "../base/text.h"
#include "holder.h"

static const char *const torch_names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};

static const struct gos_variable *find(const struct gos_evidence *evidence, const char *name)
{
    for (size_t i = 0; i < evidence->variable_count; i++)
        if (strcmp(evidence->variables[i].name, name) == 0)
            return &evidence->variables[i];
    return NULL;
}

/* What is set and empty counts as not set: so it does for everybody who reads these. */
static const char *unless_empty(const char *value)
{
    return value && value[0] ? value : NULL;
}

const char *gos_setting_get(const struct gos_evidence *evidence, const char *name)
{
    const struct gos_variable *variable = find(evidence, name);
    if (!variable)
        return NULL;
    return unless_empty(variable->at_start ? variable->at_start : variable->value);
}

const char *gos_setting_late(const struct gos_evidence *evidence, const char *name)
{
    const struct gos_variable *variable = find(evidence, name);
    bool late = variable && variable->at_start && !variable->at_start[0];
    return late ? unless_empty(variable->value) : NULL;
}

bool gos_setting_is(const struct gos_evidence *evidence, const char *name, const char *value)
{
    const char *set = gos_setting_get(evidence, name);
    return set && gos_text_is_word(set, strlen(set), value);
}

static bool is_any(const struct gos_evidence *evidence, const char *name,
                   const char *const values[4])
{
    for (int i = 0; i < 4; i++)
        if (gos_setting_is(evidence, name, values[i]))
            return true;
    return false;
}

bool gos_setting_is_on(const struct gos_evidence *evidence, const char *name)
{
    static const char *const values[] = {"1", "true", "on", "yes"};
    return is_any(evidence, name, values);
}

bool gos_setting_is_off(const struct gos_evidence *evidence, const char *name)
{
    static const char *const values[] = {"0", "false", "off", "no"};
    return is_any(evidence, name, values);
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* What follows "key:" at the start of an item, or NULL. */
static const char *item_value(const char *item, const char *key)
{
    size_t length = strlen(key);
    item = skip_blanks(item);
    if (strncmp(item, key, length) != 0)
        return NULL;
    item = skip_blanks(item + length);
    return *item == ':' ? skip_blanks(item + 1) : NULL;
}

static const char *value_in(const char *list, const char *key)
{
    for (const char *item = list; item; item = strchr(item, ',')) {
        item += *item == ',';
        const char *value = item_value(item, key);
        if (value)
            return value;
    }
    return NULL;
}

/* torch's own word, which is the same for all devices. */
static const struct gos_framework_evidence *torch_view(const struct gos_evidence *evidence)
{
    for (size_t i = 0; i < evidence->framework_count; i++)
        if (strcmp(evidence->frameworks[i].name, "torch") == 0)
            return &evidence->frameworks[i];
    return NULL;
}

/* torch's own word first: a program may have set it from inside, which leaves no variable. */
static const char *torch_value(const struct gos_evidence *evidence, const char *key)
{
    const struct gos_framework_evidence *torch = torch_view(evidence);
    const char *lists[] = {torch ? torch->settings : NULL,
                           gos_setting_get(evidence, torch_names[0]),
                           gos_setting_get(evidence, torch_names[1])};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const char *value = lists[i] ? value_in(lists[i], key) : NULL;
        if (value)
            return value;
    }
    return NULL;
}

bool gos_setting_torch_has(const struct gos_evidence *evidence, const char *key)
{
    return torch_value(evidence, key) != NULL;
}

/* Set from inside the program it leaves no variable, but only it makes torch use VMM. */
static bool torch_holds_physical(const struct gos_evidence *evidence)
{
    for (size_t i = 0; i < evidence->use_count; i++)
        if (evidence->uses[i].kind == GOS_KIND_PHYSICAL &&
            strcmp(gos_holder_of_site(evidence->uses[i].site), "torch") == 0)
            return true;
    return false;
}

bool gos_setting_torch_splits_are_limited(const struct gos_evidence *evidence)
{
    const struct gos_framework_evidence *torch = torch_view(evidence);
    if (torch && torch->max_split != GOS_SETTING_UNKNOWN)
        return torch->max_split == GOS_SETTING_ON;
    return torch_value(evidence, "max_split_size_mb") != NULL;
}

bool gos_setting_torch_collects(const struct gos_evidence *evidence)
{
    const struct gos_framework_evidence *torch = torch_view(evidence);
    if (torch && torch->collects != GOS_SETTING_UNKNOWN)
        return torch->collects == GOS_SETTING_ON;
    return torch_value(evidence, "garbage_collection_threshold") != NULL;
}

bool gos_setting_torch_expandable(const struct gos_evidence *evidence)
{
    const struct gos_framework_evidence *torch = torch_view(evidence);
    if (torch && torch->expandable != GOS_SETTING_UNKNOWN)
        return torch->expandable == GOS_SETTING_ON;
    const char *value = torch_value(evidence, "expandable_segments");
    if (value)
        return strncmp(value, "True", 4) == 0 || strncmp(value, "true", 4) == 0;
    return torch_holds_physical(evidence);
}

const char *gos_setting_torch_name(const struct gos_evidence *evidence)
{
    bool newer =
        gos_setting_get(evidence, torch_names[0]) || gos_setting_late(evidence, torch_names[0]);
    return newer ? torch_names[0] : torch_names[1];
}
