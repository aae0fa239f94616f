/* `gpuoomshim run`: the library in front of a command, settings as arguments. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/options.h"
#include "command.h"
#include "suggest.h"

#define LIBRARY "libgpuoomshim.so"
#define PATH_BYTES 4096
#define NAME_BYTES 48
#define ROWS_MAX 64

/* --- settings --- */

/* "report-dir" of "--report-dir=/tmp" as "REPORT_DIR"; false when it is too long to be one. */
static bool upper_name(const char *argument, size_t length, char name[NAME_BYTES])
{
    if (length >= NAME_BYTES)
        return false;
    for (size_t i = 0; i < length; i++)
        name[i] = argument[i] == '-' ? '_' : (char)toupper((unsigned char)argument[i]);
    name[length] = '\0';
    return true;
}

static const struct gos_option_row *find_row(const char *name)
{
    for (size_t i = 0; i < gos_option_row_count; i++) {
        if (strcmp(gos_option_rows[i].name, name) == 0)
            return &gos_option_rows[i];
    }
    return NULL;
}

static void print_as_argument(FILE *stream, const char *name)
{
    fputs("--", stream);
    for (; *name; name++)
        fputc(*name == '_' ? '-' : tolower((unsigned char)*name), stream);
}

static int complain_of_option(const char *argument, const char *name)
{
    const char *names[ROWS_MAX];
    size_t count = 0;
    for (; count < gos_option_row_count && count < ROWS_MAX; count++)
        names[count] = gos_option_rows[count].name;
    const char *meant = gos_suggest(name, names, count);
    fprintf(stderr, "gpuoomshim: run has no option '%s'", argument);
    if (meant) {
        fputs("; did you mean ", stderr);
        print_as_argument(stderr, meant);
        fputs("?\n", stderr);
    } else {
        fputs("; `gpuoomshim options` lists them\n", stderr);
    }
    return GOS_STATUS_USAGE;
}

/* The loader that the library uses reads it first, so that a mistake shows now. */
static int set_option(const struct gos_option_row *row, const char *value)
{
    char assignment[PATH_BYTES];
    char *environment[] = {assignment, NULL};
    int length = snprintf(assignment, sizeof assignment, "GPUOOMSHIM_%s=%s", row->name, value);
    if (length < 0 || (size_t)length >= sizeof assignment) {
        gos_command_complain("the value of %s is too long", row->name);
        return GOS_STATUS_USAGE;
    }
    if (gos_options_load(environment) != 0) {
        gos_command_complain("%s cannot be used, so nothing was run", assignment);
        return GOS_STATUS_USAGE;
    }
    char *equals = strchr(assignment, '=');
    *equals = '\0';
    return setenv(assignment, equals + 1, 1) == 0 ? GOS_STATUS_OK : GOS_STATUS_FAILED;
}

static int apply_argument(const char *argument)
{
    const char *equals = strchr(argument, '=');
    size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
    char name[NAME_BYTES] = "";
    bool usable = argument[1] == '-' && upper_name(argument + 2, length - 2, name);
    const struct gos_option_row *row = usable ? find_row(name) : NULL;
    if (!row)
        return complain_of_option(argument, name);
    if (!equals && row->type != GOS_OPTION_FLAG) {
        gos_command_complain("%s needs a value: %s=... (%s)", argument, argument, row->values);
        return GOS_STATUS_USAGE;
    }
    return set_option(row, equals ? equals + 1 : "1");
}

/* Index of the command's first word, or 0 after a complaint. */
static int apply_arguments(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (apply_argument(argv[i]) != GOS_STATUS_OK)
            return 0;
    }
    if (i < argc)
        return i;
    gos_command_complain("run needs a command: gpuoomshim run -- python train.py");
    return 0;
}

/* --- the library --- */

static bool directory_of_command(char path[PATH_BYTES])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    return true;
}

static bool find_near(char path[PATH_BYTES], const char *directory, const char *between)
{
    int length = snprintf(path, PATH_BYTES, "%s/%s%s", directory, between, LIBRARY);
    return length > 0 && length < PATH_BYTES && access(path, R_OK) == 0;
}

static bool find_library(char path[PATH_BYTES])
{
    char directory[PATH_BYTES];
    const char *wanted = getenv("GPUOOMSHIM_LIB");
    if (wanted && wanted[0])
        return realpath(wanted, path) && access(path, R_OK) == 0;
    return directory_of_command(directory) &&
           (find_near(path, directory, "") || find_near(path, directory, "../lib/"));
}

static int complain_of_library(void)
{
    const char *wanted = getenv("GPUOOMSHIM_LIB");
    if (wanted && wanted[0])
        gos_command_complain("GPUOOMSHIM_LIB=%s cannot be read: %s", wanted, strerror(errno));
    else
        gos_command_complain(LIBRARY " is neither beside this command nor in ../lib; "
                                     "set GPUOOMSHIM_LIB to its path");
    return GOS_STATUS_NOT_FOUND;
}

/* In front of what is preloaded already: another hook then stays between us and the driver. */
static int preload(const char *library)
{
    char list[2 * PATH_BYTES];
    const char *others = getenv("LD_PRELOAD");
    if (strpbrk(library, " :")) {
        gos_command_complain("the loader cannot preload a path with a space or colon: %s", library);
        return GOS_STATUS_FAILED;
    }
    bool any = others && others[0];
    int length = snprintf(list, sizeof list, "%s%s%s", library, any ? ":" : "", any ? others : "");
    if (length < 0 || (size_t)length >= sizeof list || setenv("LD_PRELOAD", list, 1) != 0) {
        gos_command_complain("LD_PRELOAD is too long");
        return GOS_STATUS_FAILED;
    }
    return GOS_STATUS_OK;
}

static int execute(char **command)
{
    execvp(command[0], command);
    int error = errno;
    gos_command_complain("cannot run %s: %s", command[0], strerror(error));
    return error == ENOENT ? GOS_STATUS_NOT_FOUND : GOS_STATUS_NOT_EXECUTABLE;
}

int gos_command_run(int argc, char **argv)
{
    char library[PATH_BYTES];
    int first = apply_arguments(argc, argv);
    if (first == 0)
        return GOS_STATUS_USAGE;
    if (!find_library(library))
        return complain_of_library();
    int status = preload(library);
    if (status != GOS_STATUS_OK)
        return status;
    /* It is for this command alone; to the library it would be an unknown setting. */
    unsetenv("GPUOOMSHIM_LIB");
    return execute(argv + first);
}
