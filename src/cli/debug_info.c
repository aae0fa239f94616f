#include "debug_info.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LIBDW_FUNCTIONS(FUNCTION)                                                                  \
    FUNCTION(dwarf_attr_integrate)                                                                 \
    FUNCTION(dwarf_child)                                                                          \
    FUNCTION(dwarf_filesrc)                                                                        \
    FUNCTION(dwarf_formstring)                                                                     \
    FUNCTION(dwarf_formudata)                                                                      \
    FUNCTION(dwarf_getsrc_die)                                                                     \
    FUNCTION(dwarf_getsrcfiles)                                                                    \
    FUNCTION(dwarf_haspc)                                                                          \
    FUNCTION(dwarf_lineno)                                                                         \
    FUNCTION(dwarf_linesrc)                                                                        \
    FUNCTION(dwarf_siblingof)                                                                      \
    FUNCTION(dwarf_tag)                                                                            \
    FUNCTION(dwfl_begin)                                                                           \
    FUNCTION(dwfl_end)                                                                             \
    FUNCTION(dwfl_module_addrdie)                                                                  \
    FUNCTION(dwfl_module_addrinfo)                                                                 \
    FUNCTION(dwfl_module_build_id)                                                                 \
    FUNCTION(dwfl_module_getelf)                                                                   \
    FUNCTION(dwfl_module_nextcu)                                                                   \
    FUNCTION(dwfl_report_elf)                                                                      \
    FUNCTION(dwfl_report_end)                                                                      \
    FUNCTION(dwfl_standard_find_debuginfo)

static struct {
#define FIELD(name) __typeof__(name) *name;
    LIBDW_FUNCTIONS(FIELD)
#undef FIELD
} dw;

const char *gos_debug_info_load(void)
{
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
#define LOAD(name) &&(dw.name = (__typeof__(dw.name))dlsym(library, #name))
    return library LIBDW_FUNCTIONS(LOAD) ? NULL : dlerror();
#undef LOAD
}

/* --- the file --- */

static bool has_build_id(Dwfl_Module *file, const struct gos_module *module)
{
    const unsigned char *bits = NULL;
    GElf_Addr address;
    GElf_Addr bias;
    dw.dwfl_module_getelf(file, &bias);
    int bytes = dw.dwfl_module_build_id(file, &bits, &address);
    return bytes >= module->build_id_bytes &&
           memcmp(bits, module->build_id, module->build_id_bytes) == 0;
}

/* At its own addresses: base 0. */
static int report_file(struct gos_debug_info *info, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    info->module = dw.dwfl_report_elf(info->session, path, path, fd, 0, true);
    if (!info->module)
        close(fd);
    dw.dwfl_report_end(info->session, NULL, NULL);
    return info->module ? 0 : -ENOEXEC;
}

int gos_debug_info_open(struct gos_debug_info *info, const struct gos_module *module)
{
    static Dwfl_Callbacks callbacks; /* of all sessions */
    callbacks.find_debuginfo = dw.dwfl_standard_find_debuginfo;
    *info = (struct gos_debug_info){.session = dw.dwfl_begin(&callbacks)};
    if (!info->session)
        return -ENOMEM;
    int error = module->path ? report_file(info, module->path) : -ENOENT;
    if (error == 0 && module->build_id_bytes > 0 && !has_build_id(info->module, module))
        error = -ESTALE;
    return error;
}

void gos_debug_info_close(struct gos_debug_info *info)
{
    dw.dwfl_end(info->session);
}

/* --- an address --- */

struct place {
    Dwarf_Addr address;                     /* as the debug information counts */
    Dwarf_Die *unit;                        /* NULL: nothing is known of it */
    Dwarf_Die functions[GOS_FUNCTIONS_MAX]; /* those around it, outermost first */
    size_t count;
    unsigned depth; /* of the scope that is looked into */
};

/* Far deeper than code is nested, and far less than what a damaged file may say. */
#define DEPTH_MAX 512

/* Compilers may leave out the table of units by address. */
static Dwarf_Die *find_unit(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dw.dwfl_module_addrdie(module, address, bias);
    if (unit)
        return unit;
    do {
        unit = dw.dwfl_module_nextcu(module, unit, bias);
    } while (unit && dw.dwarf_haspc(unit, address - *bias) <= 0);
    return unit;
}

/* Few parts of a unit are code, and the others take long to ask. */
static bool covers(Dwarf_Die *die, Dwarf_Addr address)
{
    switch (dw.dwarf_tag(die)) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
        return dw.dwarf_haspc(die, address) > 0;
    default:
        return false;
    }
}

static const char *text_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    return dw.dwarf_formstring(dw.dwarf_attr_integrate(die, attribute, &found));
}

static bool is_mangled(const char *name)
{
    return name && strncmp(name, "_Z", 2) == 0;
}

/* The linker's name of a C++ function tells its class and parameters as well. */
static const char *name_of(Dwarf_Die *function)
{
    const char *linkage = text_of(function, DW_AT_linkage_name);
    return is_mangled(linkage) ? linkage : text_of(function, DW_AT_name);
}

/*
 * dwarf_getscopes would not look into namespaces, where clang has its functions;
 * gcc has none there, and in a large unit they take long.
 */
static bool find_functions(Dwarf_Die *scope, struct place *place, bool in_namespaces)
{
    Dwarf_Die die;
    if (place->depth == DEPTH_MAX)
        return true;
    place->depth++;
    for (int end = dw.dwarf_child(scope, &die); end == 0; end = dw.dwarf_siblingof(&die, &die)) {
        bool is_around = covers(&die, place->address);
        if (is_around && name_of(&die) && place->count < GOS_FUNCTIONS_MAX)
            place->functions[place->count++] = die;
        bool is_open = is_around || (in_namespaces && dw.dwarf_tag(&die) == DW_TAG_namespace);
        if (is_open && (find_functions(&die, place, in_namespaces) || is_around))
            return true;
    }
    place->depth--;
    return false;
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute found;
    Dwarf_Word value = 0;
    dw.dwarf_formudata(dw.dwarf_attr_integrate(die, attribute, &found), &value);
    return value;
}

static void set_line(struct gos_function *function, const struct place *place)
{
    Dwarf_Line *line = place->unit ? dw.dwarf_getsrc_die(place->unit, place->address) : NULL;
    if (line && dw.dwarf_lineno(line, &function->line) == 0 && function->line > 0)
        function->file = dw.dwarf_linesrc(line, NULL, NULL);
}

/* Where it calls the function that was inlined. */
static void set_call(struct gos_function *function, const struct place *place, Dwarf_Die *inlined)
{
    Dwarf_Files *files = NULL;
    function->line = (int)number_of(inlined, DW_AT_call_line);
    if (function->line > 0 && dw.dwarf_getsrcfiles(place->unit, &files, NULL) == 0)
        function->file = dw.dwarf_filesrc(files, number_of(inlined, DW_AT_call_file), NULL, NULL);
}

/* In a stripped file an exported symbol is the nearest to many functions that are not its own. */
static const char *symbol_at(Dwfl_Module *module, Dwarf_Addr address)
{
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char *name = dw.dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
    return name && offset < symbol.st_size ? name : NULL;
}

/* What is local to its source file has its mangled name in the symbol table alone. */
static void set_symbol(struct gos_function *function, const char *symbol)
{
    if (!function->name || (!is_mangled(function->name) && is_mangled(symbol)))
        function->name = symbol;
}

size_t gos_debug_info_ask(const struct gos_debug_info *info, uint64_t address,
                          struct gos_function functions[GOS_FUNCTIONS_MAX])
{
    Dwarf_Addr bias = 0;
    struct place place = {.unit = find_unit(info->module, address, &bias)};
    place.address = address - bias;
    if (place.unit && !find_functions(place.unit, &place, false))
        find_functions(place.unit, &place, true);
    size_t count = place.count > 0 ? place.count : 1;
    memset(functions, 0, count * sizeof *functions);
    set_line(&functions[0], &place);
    for (size_t i = 0; i < place.count; i++) {
        Dwarf_Die *die = &place.functions[place.count - 1 - i];
        functions[i].name = name_of(die);
        if (i > 0)
            set_call(&functions[i], &place, die + 1);
    }
    set_symbol(&functions[count - 1], symbol_at(info->module, address));
    return functions[count - 1].name ? count : 0;
}
