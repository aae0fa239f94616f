stress_tests += stress_history stress_pending stress_registry
