/* `gpuoomshim options`: every setting, from the one list. */
#include <stdio.h>
#include <stdlib.h>

#include "../base/options.h"
#include "command.h"

static const char *type_name(enum gos_option_type type)
{
    static const char *const names[] = {
        [GOS_OPTION_FLAG] = "flag",
        [GOS_OPTION_COUNT] = "number",
        [GOS_OPTION_SIZE] = "size (bytes, or whole KiB, MiB, GiB, TiB)",
        [GOS_OPTION_DURATION] = "duration (seconds, or ms, s, m, h)",
        [GOS_OPTION_PATH] = "path or nothing",
        [GOS_OPTION_FUNCTIONS] = "functions of Python modules",
        [GOS_OPTION_SET] = "set of words",
        [GOS_OPTION_CHOICE] = "one word",
        [GOS_OPTION_LIMIT] = "size, or sizes by device",
        [GOS_OPTION_INJECT] = "key=value, ...",
    };
    return names[type];
}

/* By the loader itself, which also says on stderr what is wrong. */
static int is_readable(const char *assignment)
{
    char *environment[] = {(char *)(size_t)assignment, NULL};
    return gos_options_load(environment) == 0;
}

static int print_current(const char *variable)
{
    char assignment[4096];
    const char *value = getenv(variable);
    if (!value)
        return GOS_STATUS_OK;
    int length = snprintf(assignment, sizeof assignment, "%s=%s", variable, value);
    fflush(stdout);
    if (length >= 0 && (size_t)length < sizeof assignment && is_readable(assignment)) {
        printf("    now      %s\n", value);
        return GOS_STATUS_OK;
    }
    printf("    now      cannot be read, the default is used\n");
    return GOS_STATUS_FAILED;
}

static int print_row(const struct gos_option_row *row)
{
    char variable[80];
    snprintf(variable, sizeof variable, "GPUOOMSHIM_%s", row->name);
    printf("%s\n    %s\n", variable, row->help);
    printf("    type     %s: %s\n", type_name(row->type), row->values);
    printf("    default  %s\n", row->fallback[0] ? row->fallback : "(not set)");
    return print_current(variable);
}

int gos_command_options(int argc, char **argv)
{
    int status = GOS_STATUS_OK;
    if (argc > 1) {
        gos_command_complain("options takes no argument, but got '%s'", argv[1]);
        return GOS_STATUS_USAGE;
    }
    for (size_t i = 0; i < gos_option_row_count; i++) {
        if (i > 0)
            putchar('\n');
        int result = print_row(&gos_option_rows[i]);
        status = result ? result : status;
    }
    return status;
}
