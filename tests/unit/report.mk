unit_tests += test_report_document test_report_draft test_report_emitter test_report_files test_report_stacks
test_report_document_sources := tests/unit/report_shapes.c
test_report_draft_sources := tests/unit/report_shapes.c
test_report_files_sources := tests/unit/report_shapes.c
