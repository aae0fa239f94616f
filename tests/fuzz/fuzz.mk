fuzz_tests += fuzz_words
