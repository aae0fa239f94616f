unit_tests += test_cli_pieces
