stress_tests += stress_fallback stress_history stress_pending stress_registry
