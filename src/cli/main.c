#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../report/version.h"
#include "command.h"
#include "suggest.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *arguments;
    const char *help;
};

static int show_version(int argc, char **argv);
static int show_help(int argc, char **argv);

static const struct command commands[] = {
    {"run", gos_command_run, "[--option=value ...] -- command [arguments]",
     "run a command with the library preloaded"},
    {"show", gos_command_show, "FILE.json|FILE.draft [--json PATH] [--all] [--symbolize]",
     "print a report for people, or a part of it as JSON"},
    {"options", gos_command_options, "", "list the settings and their values here"},
    {"version", show_version, "", "print the version"},
    {"help", show_help, "", "print this"},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static int show_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("gpuoomshim " GOS_VERSION);
    return GOS_STATUS_OK;
}

static void print_command(FILE *stream, const struct command *command)
{
    fprintf(stream, "  gpuoomshim %s%s%s\n      %s\n", command->name,
            command->arguments[0] ? " " : "", command->arguments, command->help);
}

static void print_usage(FILE *stream)
{
    fputs("gpuoomshim tells why a CUDA program ran out of memory.\n\nusage:\n", stream);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        print_command(stream, &commands[i]);
    fputs("\nWithout this command: LD_PRELOAD=/path/to/libgpuoomshim.so python train.py\n", stream);
}

static int show_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    print_usage(stdout);
    return GOS_STATUS_OK;
}

/* --help and --version are what people type first. */
static const char *without_dashes(const char *name)
{
    if (strcmp(name, "-h") == 0)
        return "help";
    return strncmp(name, "--", 2) == 0 ? name + 2 : name;
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    if (argc < 2 || !asks_for_help(argv[1]))
        return command->run(argc, argv);
    print_command(stdout, command);
    return GOS_STATUS_OK;
}

static int complain_of_command(const char *name)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    const char *meant = gos_suggest(name, names, COMMAND_COUNT);
    if (meant)
        gos_command_complain("there is no command '%s'; did you mean '%s'?", name, meant);
    else
        gos_command_complain("there is no command '%s'; `gpuoomshim help` lists them", name);
    return GOS_STATUS_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return GOS_STATUS_USAGE;
    }
    const char *name = without_dashes(argv[1]);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return run_command(&commands[i], argc - 1, argv + 1);
    }
    return complain_of_command(argv[1]);
}
