#!/usr/bin/env python3
"""Tests of what instructions.py reads and says; needs no valgrind."""

import re
import unittest

from instructions import CannotCount, compare, judge, merge, total_of


class Judging(unittest.TestCase):
    def test_marks_what_rose_by_more_than_the_tolerance(self):
        self.assertEqual(judge(100, 106)[1], "MORE")
        self.assertEqual(judge(100, 104)[1], "")
        self.assertEqual(judge(100, 96)[1], "")
        self.assertEqual(judge(100, 94)[1], "less")

    def test_a_case_without_a_partner_is_no_regression(self):
        self.assertEqual(judge(None, 50), (None, "new"))
        self.assertEqual(judge(50, None), (None, "gone"))


class Comparing(unittest.TestCase):
    def test_counts_the_cases_that_need_more_and_names_each(self):
        lines, more = compare({"a": 100.0, "b": 100.0, "old": 1.0}, {"a": 120.0, "b": 80.0, "fresh": 7.0})
        self.assertEqual(more, 1)
        text = "\n".join(lines)
        self.assertRegex(text, r"(?m)^a .*100\.0 -> +120\.0 +x1\.200 MORE$")
        self.assertRegex(text, r"(?m)^b .*x0\.800 less$")
        self.assertRegex(text, r"(?m)^fresh .*- -> +7\.0 +new$")
        self.assertRegex(text, r"(?m)^old .*1\.0 -> +- +gone$")

    def test_a_filter_does_not_call_the_rest_gone(self):
        lines, _ = compare({"a": 1.0, "b": 1.0}, {"a": 1.0}, re.compile("a"))
        self.assertEqual(len(lines), 1)


class Recording(unittest.TestCase):
    def test_a_filter_keeps_what_it_left_out(self):
        self.assertEqual(merge({"a": 1.0, "b": 2.0}, {"a": 3.0}, re.compile("a")), {"a": 3.0, "b": 2.0})

    def test_without_a_filter_what_is_gone_is_forgotten(self):
        self.assertEqual(merge({"a": 1.0, "b": 2.0}, {"a": 3.0}), {"a": 3.0})


class Reading(unittest.TestCase):
    def test_takes_the_total_of_a_profile(self):
        self.assertEqual(total_of("events: Ir\nfn=(1) run\n12 7\nsummary: 4711\n"), 4711)

    def test_refuses_a_profile_in_which_nothing_was_collected(self):
        for profile in ("events: Ir\nsummary: 0\n", "events: Ir\n"):
            with self.assertRaises(CannotCount):
                total_of(profile)


if __name__ == "__main__":
    unittest.main()
