/* C++ functions by the names that people gave them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/base/cxx_name.h"

static void check(const char *symbol, const char *expected)
{
    char buffer[1024];
    struct gos_text text = gos_text_on(buffer, sizeof buffer);
    gos_cxx_name_put(&text, symbol);
    assert_string_equal(buffer, expected);
}

static void functions_are_named_without_their_arguments(void **state)
{
    (void)state;
    check("_Z3fooi", "foo");
    check("_ZL6hiddeni", "hidden");
    check("_ZN5model5Layer4growESt6vectorIiSaIiEE", "model::Layer::grow");
    check("_ZNK2at10TensorBase4sizeEl", "at::TensorBase::size");
    check("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back");
    check("_ZN12_GLOBAL__N_14workEv", "(anonymous)::work");
    check("_ZSt9terminatev", "std::terminate");
    check("_ZNSs6appendEPKcm", "std::string::append");
    check("_ZN3fooB5cxx11Ev.constprop.0", "foo");
    check("_ZNO3Box4takeEv", "Box::take");
}

static void constructors_operators_and_lambdas_have_names(void **state)
{
    (void)state;
    check("_ZN5model5LayerC2Ei", "model::Layer::Layer");
    check("_ZN5model5LayerD1Ev", "model::Layer::~Layer");
    check("_ZN3BoxIN1a4ItemEEC1Ev", "Box::Box");
    check("_ZNK3FooclEv", "Foo::operator()");
    check("_Znwm", "operator new");
    check("_ZN3FoocvbEv", "Foo::operator");
    check("_ZZN3foo3barEvENKUlvE_clEv", "foo::bar::{lambda}::operator()");
    check("_ZZ4mainENKUliPKcE0_clEiS0_", "main::{lambda}::operator()");
    check("_ZZN1a1fERKSt6vectorIiSaIiEEE5table", "a::f::table");
}

static void template_arguments_are_stepped_over(void **state)
{
    (void)state;
    check("_ZN2at6native10gpu_kernelILi4EJdPFvvEN3c104HalfEELb0EEEvRT_T0_",
          "at::native::gpu_kernel");
    check("_Z3mapIN1a1bILi3EEESt4pairIKS1_A4_cEEvT_", "map");
    check("_Z5applyIMN1a1bEFivEEvT_", "apply");
    check("_Z4sortILN1a5OrderE1EEvv", "sort");
}

static void what_is_not_understood_stays_as_it_is(void **state)
{
    static const char *const symbols[] = {"",
                                          "main",
                                          "_Z",
                                          "_ZN",
                                          "_ZN3foo",
                                          "_Z99foo",
                                          "_ZTV3Foo",
                                          "_ZThn16_N3Foo3barEv",
                                          "_ZN3fooIXsrT_5valueEE3barEv",
                                          "_ZNS_3fooEv",
                                          "_ZC1",
                                          "_ZN1aILi",
                                          "_ZZ",
                                          "_ZNU",
                                          "_Z18446744073709551617a",
                                          "_ZGVZ4mainE1x",
                                          "_Zc"};
    (void)state;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        check(symbols[i], symbols[i]);
}

static void depth_is_bounded(void **state)
{
    static const char *const bricks[] = {"J", "N1aI", "P", "F", "Z", "M", "Dp", "A1_", "1aI", "L"};
    char symbol[100000];
    char buffer[64];
    (void)state;
    for (size_t i = 0; i < sizeof bricks / sizeof bricks[0]; i++) {
        size_t length = (size_t)strlen(strcpy(symbol, "_Z1fI"));
        while (length + 8 < sizeof symbol)
            length += strlen(strcpy(symbol + length, bricks[i]));
        struct gos_text text = gos_text_on(buffer, sizeof buffer);
        gos_cxx_name_put(&text, symbol);
        assert_true(text.truncated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_named_without_their_arguments),
        cmocka_unit_test(constructors_operators_and_lambdas_have_names),
        cmocka_unit_test(template_arguments_are_stepped_over),
        cmocka_unit_test(what_is_not_understood_stays_as_it_is),
        cmocka_unit_test(depth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
