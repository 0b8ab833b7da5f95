# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns of unit tests cover all of them, each once, and a part is what ./dev test asks for alone."""
import unittest

import turns


def listed(count):
    return [unittest.FunctionTestCase(lambda: None, description=str(number)) for number in range(count)]


class Turns(unittest.TestCase):
    def test_four_turns_are_all_tests(self):
        tests = listed(11)
        parts = [turns.chosen(tests, 4, {"WAVEJIT_TEST_SAMPLE": "1", "WAVEJIT_TEST_TURN": str(1424 + number)}) for number in range(4)]
        self.assertEqual(sorted(len(part) for part in parts), [2, 3, 3, 3])
        self.assertEqual({id(each) for part in parts for each in part}, {id(each) for each in tests})

    def test_all_where_nobody_asks_for_a_part(self):
        tests = listed(5)
        for words in ({}, {"WAVEJIT_TEST_TURN": "3"}, {"WAVEJIT_TEST_SAMPLE": "1", "WAVEJIT_TEST_WHOLE": "1"}):
            self.assertEqual(turns.chosen(tests, 4, words), tests)

    def test_a_file_that_cannot_be_imported_fails_in_each_turn(self):
        missing = list(turns.cases(unittest.defaultTestLoader.loadTestsFromNames(["no_such_file_test"])))
        for number in range(4):
            self.assertEqual(turns.chosen([*listed(2), *missing], 4, {"WAVEJIT_TEST_SAMPLE": "1", "WAVEJIT_TEST_TURN": str(number)})[-1:], missing)


if __name__ == "__main__":
    unittest.main()
