unit_tests += test_recover_callback
