fault_tests += fault_memory fault_report
