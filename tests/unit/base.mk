unit_tests += test_base_cxx_name test_base_libc_symbol test_base_lock test_base_log \
              test_base_memory test_base_module test_base_options test_base_os test_base_text \
              test_base_thread test_cuda_error test_cuda_nvml test_cuda_visible_devices

# dlsym and dlopen to compare with, also where the C library does not hold them.
test_base_libc_symbol_ldlibs := -ldl
test_base_module_ldlibs := -ldl
unit_tests += test_base_residence
