unit_tests += test_cuda_array_bytes
unit_tests += test_track_handles
unit_tests += test_track_shares
