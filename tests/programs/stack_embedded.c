/*
 * A C program with an interpreter inside, of the libpython that is named: it
 * allocates before there is an interpreter, inside it, after its end, and again
 * in a second one.
 */
#include "host.h"

static void one_round(const char *what)
{
    CUdeviceptr address;
    outcome(what, driver.mem_alloc(&address, MIB));
    MUST(driver.mem_free(address));
}

static void run(void *python, const char *program)
{
    void (*start)(int) = (void (*)(int))dlsym(python, "Py_InitializeEx");
    int (*end)(void) = (int (*)(void))dlsym(python, "Py_FinalizeEx");
    int (*run_string)(const char *, void *) =
        (int (*)(const char *, void *))dlsym(python, "PyRun_SimpleStringFlags");
    if (!start || !end || !run_string)
        exit(77);
    start(0);
    printf("outcome: program gave %d\n", run_string(program, NULL));
    one_round("beside the interpreter");
    end();
}

int main(int argc, char **argv)
{
    void *python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);

    if (argc < 3 || python == NULL)
        exit(77);
    open_device();
    for (int i = 0; i < 70; i++) /* a search for an interpreter is due now and then */
        one_round("before");
    run(python, argv[2]);
    one_round("after");
    run(python, "again = True"); /* not every extension module can be loaded twice */
    one_round("at the end");
    tell_live();
    return 0;
}
