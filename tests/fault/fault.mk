fault_tests += fault_draft fault_memory fault_report
