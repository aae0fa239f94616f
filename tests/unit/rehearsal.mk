unit_tests += test_base_rehearsal test_track_allowance
