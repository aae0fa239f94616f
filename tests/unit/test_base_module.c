#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include <cmocka.h>

#include "../../src/base/elf_image.h"
#include "../../src/base/memory.h"
#include "../../src/base/module.h"
#include "../../src/base/os.h"

#define PASSING_LIBRARY "libthread_db.so.1" /* in libc's own package, needed by nobody here */

__attribute__((visibility("default"))) int exported_here(int n);

int exported_here(int n)
{
    return n * 3 + 1;
}

static const struct gos_module *libc(void)
{
    const struct gos_module *module = gos_module_named("libc.so.6");

    assert_non_null(module);
    return module;
}

static struct gos_elf_image image_of(const struct gos_module *module)
{
    struct gos_elf_image image;

    assert_true(gos_elf_image_make(module->base, module->dynamic, &image));
    return image;
}

/* libc's own function, even where a sanitizer puts another of that name in front. */
static uintptr_t in_libc(const char *name)
{
    void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    uintptr_t address = (uintptr_t)dlsym(handle, name);

    dlclose(handle);
    return address;
}

/* libc's exported functions and objects, with what the loader says of each. */
static void for_each_libc_symbol(void (*check)(const char *name, const ElfW(Sym) *, uintptr_t))
{
    struct gos_elf_image image = image_of(libc());
    void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    uint32_t count = gos_elf_symbol_count(&image);
    int checked = 0;

    assert_non_null(handle);
    for (uint32_t i = 1; i < count; i++) {
        const ElfW(Sym) *symbol = &image.symbols[i];
        const char *name = gos_elf_string(&image, symbol->st_name);
        unsigned type = ELF64_ST_TYPE(symbol->st_info);

        if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || type == STT_TLS)
            continue;
        check(name, symbol, (uintptr_t)dlsym(handle, name));
        checked++;
    }
    assert_true(checked > 300);
    dlclose(handle);
}

static void check_by_module(const char *name, const ElfW(Sym) * symbol, uintptr_t expected)
{
    uintptr_t found = gos_module_symbol(libc(), name);

    /* An IFUNC's address is its resolver's, which must not be handed out. */
    if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
        assert_int_equal(found, 0);
    else if (found != 0 && found != expected)
        fail_msg("%s: %lx, not %lx", name, (unsigned long)found, (unsigned long)expected);
}

static void symbols_have_the_address_that_dlsym_gives(void **state)
{
    (void)state;
    for_each_libc_symbol(check_by_module);
}

static void well_known_functions_are_found(void **state)
{
    static const char *const names[] = {"printf",  "getpid", "fork",
                                        "environ", "stdout", "dl_iterate_phdr"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(gos_module_symbol(libc(), names[i]), in_libc(names[i]));
}

static struct gos_elf_image gnu_only, sysv_only;

static void check_by_both_hashes(const char *name, const ElfW(Sym) * symbol, uintptr_t expected)
{
    (void)symbol, (void)expected;
    assert_int_equal(gos_elf_symbol(&gnu_only, name), gos_elf_symbol(&sysv_only, name));
}

static void both_hash_tables_give_the_same(void **state)
{
    (void)state;
    gnu_only = sysv_only = image_of(libc());
    if (!gnu_only.gnu_hash || !gnu_only.sysv_hash)
        skip();
    gnu_only.sysv_hash = NULL;
    sysv_only.gnu_hash = NULL;
    assert_int_equal(gos_elf_symbol_count(&gnu_only), gos_elf_symbol_count(&sysv_only));
    for_each_libc_symbol(check_by_both_hashes);
    assert_int_equal(gos_elf_symbol(&sysv_only, "no_such_function"), 0);
}

static void the_vdso_has_a_clock(void **state)
{
    struct gos_elf_image image;

    (void)state;
    if (!getauxval(AT_SYSINFO_EHDR))
        skip();
    assert_true(gos_elf_image_at(getauxval(AT_SYSINFO_EHDR), &image));
    assert_true(gos_elf_symbol_count(&image) > 1);
}

static void unknown_symbols_and_modules_give_nothing(void **state)
{
    (void)state;
    assert_int_equal(gos_module_symbol(libc(), "no_such_function"), 0);
    assert_int_equal(gos_module_symbol(libc(), ""), 0);
    assert_int_equal(gos_module_symbol(NULL, "printf"), 0);
    assert_null(gos_module_named("libnosuchthing"));
    assert_null(gos_module_of(1));
    assert_null(gos_module_at(UINT32_MAX));
    assert_null(gos_module_nearest(NULL, 1, NULL));
}

static void an_address_belongs_to_its_module(void **state)
{
    uintptr_t inside = in_libc("fclose");
    const struct gos_module *program = gos_module_of((uintptr_t)exported_here);
    char path[4096] = {0};

    (void)state;
    assert_ptr_equal(gos_module_of(inside), libc());
    assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
    assert_string_equal(program->path, path);
    assert_string_equal(program->name, strrchr(path, '/') + 1);
    assert_ptr_equal(gos_module_at(program->index), program);
}

static bool is_visited(const struct gos_module *module, void *arg)
{
    const struct gos_module **visited = arg;

    visited[module->index] = module;
    return false;
}

static int count_loaded(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const struct gos_module **visited = arg;
    const ElfW(Phdr) *segment = info->dlpi_phdr;
    bool found = false;

    (void)bytes;
    while (segment->p_type != PT_LOAD)
        segment++;
    for (int i = 0; i < 256 && !found; i++)
        found = visited[i] && visited[i]->base == info->dlpi_addr &&
                visited[i]->start == info->dlpi_addr + segment->p_vaddr;
    return found ? 0 : 1;
}

static void a_search_visits_all_that_is_loaded(void **state)
{
    static const struct gos_module *visited[256];

    (void)state;
    assert_null(gos_module_search(is_visited, visited));
    assert_int_equal(dl_iterate_phdr(count_loaded, visited), 0);
}

static bool is_first(const struct gos_module *module, void *arg)
{
    (void)module;
    ++*(int *)arg;
    return true;
}

static void a_search_ends_at_the_first_match_beginning_with_the_program(void **state)
{
    int visits = 0;

    (void)state;
    assert_ptr_equal(gos_module_search(is_first, &visits), gos_module_of((uintptr_t)exported_here));
    assert_int_equal(visits, 1);
}

static void needed_libraries_are_known(void **state)
{
    const struct gos_module *program = gos_module_of((uintptr_t)exported_here);
    const struct gos_module *cmocka = gos_module_named("libcmocka");

    (void)state;
    assert_true(gos_module_needs(program, cmocka));
    assert_true(gos_module_needs(cmocka, libc()));
    assert_false(gos_module_needs(libc(), cmocka));
    assert_false(gos_module_needs(program, program));
}

static void build_ids_are_read(void **state)
{
    (void)state;
    /* Distributions build their C library with one; any reasonable length will do. */
    assert_in_range(libc()->build_id_bytes, 8, 20);
}

/* Every function of libc, asked for at its first, middle and last byte. */
static void check_nearest(const char *name, const ElfW(Sym) * symbol, uintptr_t expected)
{
    uintptr_t start = libc()->base + symbol->st_value;
    uint64_t offset = 0;
    const char *nearest;

    (void)name, (void)expected;
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size == 0)
        return;
    nearest = gos_module_nearest(libc(), start, &offset);
    assert_non_null(nearest);
    assert_int_equal(offset, 0);
    nearest = gos_module_nearest(libc(), start + symbol->st_size - 1, &offset);
    assert_non_null(nearest);
    assert_true(offset <= symbol->st_size - 1);
}

static void functions_are_found_by_every_address_inside(void **state)
{
    (void)state;
    for_each_libc_symbol(check_nearest);
}

static void the_nearest_function_is_the_one_that_dladdr_names(void **state)
{
    static const char *const names[] = {"fclose", "qsort", "printf", "opendir", "regexec"};
    uint64_t offset = 4711;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uintptr_t inside = gos_module_symbol(libc(), names[i]) + 5;
        const char *nearest = gos_module_nearest(libc(), inside, &offset);
        Dl_info info;

        assert_true(dladdr((void *)inside, &info));
        assert_int_equal(inside - offset, (uintptr_t)info.dli_saddr);
        assert_int_equal(offset, 5);
        assert_int_equal(gos_module_symbol(libc(), nearest), inside - 5);
    }
}

static void an_address_in_no_exported_function_has_no_name(void **state)
{
    uint64_t offset = 4711;

    (void)state;
    assert_null(gos_module_nearest(libc(), libc()->base + 64, &offset));
    assert_null(gos_module_nearest(libc(), libc()->base - 1, &offset));
    assert_int_equal(offset, 4711);
}

static void a_library_that_comes_is_found_and_one_that_went_keeps_its_name(void **state)
{
    void *handle;
    uintptr_t inside;
    const struct gos_module *module;

    (void)state;
    assert_null(gos_module_named(PASSING_LIBRARY));
    handle = dlopen(PASSING_LIBRARY, RTLD_LAZY);
    assert_non_null(handle);
    inside = (uintptr_t)dlsym(handle, "td_init");
    module = gos_module_of(inside);
    assert_ptr_equal(module, gos_module_named(PASSING_LIBRARY));
    assert_int_equal(gos_module_symbol(module, "td_init"), inside);
    assert_string_equal(gos_module_nearest(module, inside, NULL), "td_init");
    assert_int_equal(dlclose(handle), 0);
    assert_null(gos_module_named(PASSING_LIBRARY));
    assert_ptr_equal(gos_module_of(inside), module);
    assert_string_equal(module->name, PASSING_LIBRARY);
    /* Its symbols are unmapped; asking must give nothing, not a fault. */
    assert_int_equal(gos_module_symbol(module, "td_init"), 0);
    assert_null(gos_module_nearest(module, inside, NULL));
    assert_false(gos_module_needs(module, libc()));
}

static void a_library_that_returns_to_its_place_is_the_same_module(void **state)
{
    uint32_t first = UINT32_MAX;

    (void)state;
    for (int i = 0; i < 3; i++) {
        void *handle = dlopen(PASSING_LIBRARY, RTLD_LAZY);
        const struct gos_module *module = gos_module_of((uintptr_t)dlsym(handle, "td_init"));

        assert_string_equal(module->name, PASSING_LIBRARY);
        first = first == UINT32_MAX ? module->index : first;
        assert_true(module->index - first <= 2);
        dlclose(handle);
    }
}

static void copy_file(const char *from, const char *to)
{
    char buffer[65536];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    size_t bytes;

    assert_true(in && out);
    while ((bytes = fread(buffer, 1, sizeof(buffer), in)) > 0)
        assert_int_equal(fwrite(buffer, 1, bytes, out), bytes);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* ... also after the program has gone elsewhere, and after something else was loaded. */
static void a_library_found_by_a_relative_path_has_an_absolute_one(void **state)
{
    char folder[] = "/tmp/test_base_module.XXXXXX";
    char path[64];
    void *original = dlopen(PASSING_LIBRARY, RTLD_LAZY);
    void *copy;
    const struct gos_module *module;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    copy_file(gos_module_named(PASSING_LIBRARY)->path, "copied.so");
    copy = dlopen("./copied.so", RTLD_LAZY);
    assert_non_null(copy);
    assert_int_equal(chdir("/"), 0);
    module = gos_module_named("copied.so");
    assert_non_null(module);
    snprintf(path, sizeof(path), "%s/copied.so", folder);
    assert_string_equal(module->path, path);
    dlclose(original);
    assert_ptr_equal(gos_module_named("copied.so"), module);
    dlclose(copy);
    unlink(path);
    rmdir(folder);
}

/*
 * For the thread sanitizer, which sees neither the loader's lock nor system
 * calls: it is told of the one, and memory comes through libc meanwhile.
 */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
    return "race:copy_path\nrace:collect\nrace:gos_module_describe\nrace:gos_elf_\n";
}

static void *map_by_libc(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_by_libc(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

static struct gos_os original;

static int use_libc(void **state)
{
    (void)state;
    original = gos_os;
    gos_os.map = map_by_libc;
    gos_os.unmap = unmap_by_libc;
    return 0;
}

static int restore_table(void **state)
{
    (void)state;
    gos_os = original;
    return 0;
}

static _Atomic bool is_over;

static void *load_and_unload(void *arg)
{
    (void)arg;
    for (int i = 0; i < 300; i++) {
        void *handle = dlopen(PASSING_LIBRARY, RTLD_LAZY);

        gos_module_of((uintptr_t)dlsym(handle, "td_init"));
        dlclose(handle);
    }
    is_over = true;
    return NULL;
}

static void *look_up_meanwhile(void *arg)
{
    uintptr_t inside = in_libc("fclose");
    const struct gos_module *expected = gos_module_of(inside);

    (void)arg;
    while (!is_over) {
        const struct gos_module *passing = gos_module_named(PASSING_LIBRARY);

        if (gos_module_of(inside) != expected)
            return "the wrong module";
        if (passing && !gos_module_symbol(passing, "td_init") &&
            gos_module_nearest(passing, passing->start, NULL))
            return "a name in an object without symbols";
    }
    return NULL;
}

static void lookups_stay_right_while_libraries_come_and_go(void **state)
{
    pthread_t threads[3];

    (void)state;
    is_over = false;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, i ? look_up_meanwhile : load_and_unload, NULL);
    for (int i = 0; i < 3; i++) {
        void *complaint;

        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
}

static void *no_memory(size_t bytes)
{
    (void)bytes;
    return NULL;
}

static void without_memory_a_new_library_is_not_known_and_later_it_is(void **state)
{
    void *(*map)(size_t) = gos_os.map;
    void *handle;

    (void)state;
    assert_null(gos_module_named(PASSING_LIBRARY));
    handle = dlopen(PASSING_LIBRARY, RTLD_LAZY);
    gos_os.map = no_memory;
    assert_null(gos_module_named(PASSING_LIBRARY));
    assert_ptr_equal(gos_module_of(in_libc("fclose")), gos_module_named("libc.so.6"));
    gos_os.map = map;
    assert_non_null(gos_module_named(PASSING_LIBRARY));
    dlclose(handle);
}

static int child_checks(const struct gos_module *before)
{
    gos_memory_reset_after_fork();
    gos_module_reset_after_fork();
    if (gos_module_named("libc.so.6") != before)
        return 1;
    if (gos_module_of(before->start) != before)
        return 2;
    return strcmp(before->name, "libc.so.6") == 0 ? 0 : 3;
}

static void a_forked_child_keeps_the_table(void **state)
{
    const struct gos_module *before = libc();
    int status = -1;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(child_checks(before));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_have_the_address_that_dlsym_gives),
        cmocka_unit_test(well_known_functions_are_found),
        cmocka_unit_test(both_hash_tables_give_the_same),
        cmocka_unit_test(the_vdso_has_a_clock),
        cmocka_unit_test(unknown_symbols_and_modules_give_nothing),
        cmocka_unit_test(an_address_belongs_to_its_module),
        cmocka_unit_test(a_search_visits_all_that_is_loaded),
        cmocka_unit_test(a_search_ends_at_the_first_match_beginning_with_the_program),
        cmocka_unit_test(needed_libraries_are_known),
        cmocka_unit_test(build_ids_are_read),
        cmocka_unit_test(functions_are_found_by_every_address_inside),
        cmocka_unit_test(the_nearest_function_is_the_one_that_dladdr_names),
        cmocka_unit_test(an_address_in_no_exported_function_has_no_name),
        cmocka_unit_test(a_library_that_comes_is_found_and_one_that_went_keeps_its_name),
        cmocka_unit_test(a_library_that_returns_to_its_place_is_the_same_module),
        cmocka_unit_test(a_library_found_by_a_relative_path_has_an_absolute_one),
        cmocka_unit_test_setup_teardown(lookups_stay_right_while_libraries_come_and_go, use_libc,
                                        restore_table),
        cmocka_unit_test(without_memory_a_new_library_is_not_known_and_later_it_is),
        cmocka_unit_test(a_forked_child_keeps_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
