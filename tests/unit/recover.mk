unit_tests += test_recover_callback test_recover_helper
