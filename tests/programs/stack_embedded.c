/*
 * A C program with an interpreter inside, of the libpython that is named: it
 * allocates before there is one, out of its functions, after its end, and again
 * in a second one.  "global" or "local" says how the library is opened, "kept"
 * or "closed" what becomes of it between the two, "first" or "late" whether it
 * is opened before the device.
 */
#include <string.h>

#include "host.h"

/* As Python.h has it; no header of Python is used. */
struct method {
    const char *name;
    void *(*call)(void *, void *);
    int flags;
    const char *doc;
};
enum { NO_ARGUMENTS = 4 };

static const char program[] = "def inner():\n"
                              "    allocate()\n"
                              "def outer():\n"
                              "    inner()\n"
                              "for i in range(100):\n"
                              "    outer()\n";

static void *python;
static struct method method;

static void *find(const char *name)
{
    void *found = dlsym(python, name);

    if (!found)
        exit(77);
    return found;
}

static void open_python(const char *library, const char *how)
{
    python = dlopen(library, RTLD_NOW | (strcmp(how, "local") == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
    if (!python)
        exit(77);
}

static void one_round(void)
{
    CUdeviceptr address;

    MUST(driver.mem_alloc(&address, MIB));
    MUST(driver.mem_free(address));
}

/* A failure asks the interpreter what its frameworks hold. */
static void too_much(void)
{
    CUdeviceptr address;

    outcome("too much", driver.mem_alloc(&address, free_bytes() + 64 * MIB));
}

/* To be found in the report: freed by nobody. */
static void *allocate(void *self, void *arguments)
{
    CUdeviceptr address;

    (void)self;
    (void)arguments;
    MUST(driver.mem_alloc(&address, 4096));
    return ((void *(*)(long))find("PyLong_FromLong"))(0);
}

static void offer_allocate(void)
{
    void *(*function)(struct method *, void *, void *) = find("PyCFunction_NewEx");
    void *(*module)(const char *) = find("PyImport_AddModule");
    int (*set)(void *, const char *, void *) = find("PyObject_SetAttrString");

    method = (struct method){"allocate", allocate, NO_ARGUMENTS, NULL};
    set(module("__main__"), "allocate", function(&method, NULL, NULL));
}

static void run_program(void)
{
    ((void (*)(int))find("Py_InitializeEx"))(0);
    offer_allocate();
    printf("outcome: program gave %d\n",
           ((int (*)(const char *, void *))find("PyRun_SimpleStringFlags"))(program, NULL));
    too_much();
    ((int (*)(void))find("Py_FinalizeEx"))();
}

int main(int argc, char **argv)
{
    bool is_late;

    if (argc < 6)
        return 1;
    is_late = strcmp(argv[4], "late") == 0;
    if (!is_late)
        open_python(argv[1], argv[2]);
    open_device();
    for (int i = 0; i < 10; i++)
        one_round();
    if (is_late)
        open_python(argv[1], argv[2]);
    run_program();
    if (strcmp(argv[3], "closed") == 0)
        printf("outcome: closed %d\n", dlclose(python));
    for (int i = 0; i < 200; i++)
        one_round();
    too_much();
    if (strcmp(argv[3], "closed") == 0)
        open_python(argv[1], argv[2]);
    run_program();
    snapshot(argv[5]);
    tell_live();
    return 0;
}
