#!/usr/bin/env python3
"""Tests of what compare.py reads from result files and says about them."""

import unittest

from compare import ratios_of, verdict


def spread(low, median, high):
    return {"low": low, "median": median, "high": high}


def fleet(population, rows):
    return {"transport": "tcp", "durability": "interval", "population": population,
            "resident_bytes_per_object": 180, "rows": rows}


def row(ratios, **others):
    return {"workload": "probe", "api": "unary", "callers": 8, "batch": 128, "ratios": ratios, **others}


class Verdicts(unittest.TestCase):
    def test_spreads_that_overlap_say_nothing(self):
        self.assertEqual(verdict(spread(0.7, 0.8, 0.9), spread(0.6, 0.7, 0.75), True), "")

    def test_spreads_apart_say_better_or_worse_by_the_sense_of_the_figure(self):
        lower, higher = spread(0.4, 0.5, 0.6), spread(0.7, 0.8, 0.9)
        self.assertEqual(verdict(lower, higher, True), "better")
        self.assertEqual(verdict(higher, lower, True), "WORSE")
        self.assertEqual(verdict(lower, higher, False), "WORSE")
        self.assertEqual(verdict(higher, lower, False), "better")


class Reading(unittest.TestCase):
    def test_takes_each_ratio_of_a_cell_and_of_what_happened_during_it(self):
        during = {"event": "stall", "items_of_undisturbed": spread(0.9, 1, 1.1)}
        found = ratios_of({"fleets": [fleet(10_000, [row({"items_of_echo": spread(0.8, 0.9, 1)}, during=[during])])]})
        self.assertEqual({name for _, name in found}, {"items/echo", "items"})
        self.assertTrue(any(cell.endswith("during stall") for cell, _ in found))

    def test_memory_counts_only_where_there_are_enough_objects(self):
        names = lambda population: {name for _, name in ratios_of({"fleets": [fleet(population, [])]})}
        self.assertEqual(names(10_000), set())
        self.assertEqual(names(1_000_000), {"bytes/object"})


if __name__ == "__main__":
    unittest.main()
