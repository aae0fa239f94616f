stress_tests += stress_pending stress_registry
