"""Shards are written as documents come: the same bytes, in memory that does not grow with them."""

import struct
import tracemalloc
import unittest

import numpy as np
import xxhash
from prepared import PrepareTest, Shard
from shard_set import heldout_mask
from token_shard import ShardInfo, ShardWriter, TokenDocument, write_token_shard


class ShardSets(PrepareTest):
    def test_the_held_out_documents_are_those_whose_index_hashes_lowest(self):
        for count, fraction, seed, held in (
            (10, 0.3, 42, 3),
            (5, 0.001, 1, 1),
            (5, 0.999, 1, 4),
            (200, 0.1, 7, 20),
        ):
            keys = [xxhash.xxh3_64_intdigest(struct.pack("<QQ", seed, i)) for i in range(count)]
            lowest = sorted(range(count), key=keys.__getitem__)[:held]
            self.assertEqual(
                np.flatnonzero(heldout_mask(count, fraction, seed)).tolist(), sorted(lowest)
            )

    def test_a_split_parts_documents_with_their_masks_in_order(self):
        records = [{"prompt": f"{i}?", "completion": f"{i}"} for i in range(10)]
        self.prepare(self.write_lines("a.jsonl", records), "--split-fraction", 0.3)
        self.assertEqual(self.shard("heldout").texts(), ["0?0|", "5?5|", "9?9|"])
        self.assertEqual(self.shard("heldout").trained_texts(), ["0|", "5|", "9|"])
        self.assertEqual(
            self.shard().trained_texts(), [f"{i}|" for i in range(10) if i not in (0, 5, 9)]
        )

    def test_a_split_needs_two_documents(self):
        path = self.write("a.txt", "a")
        self.assertIn("at least two", self.refusal(path, "--split-fraction", 0.5))

    def test_masks_and_bounds_are_kept_over_many_writes(self):
        generator = np.random.default_rng(3)
        documents = [
            TokenDocument(
                generator.integers(0, 70000, length, np.uint32),
                None if length % 3 else generator.integers(0, 2, length).astype(bool),
            )
            for length in generator.integers(1, 700_001, 12)
        ]
        path = self.folder / "a.tok"
        write_token_shard(path, ShardInfo(70000, "wide", "train"), documents)
        shard = Shard(path)
        self.assertEqual(shard.documents(), [document.tokens.tolist() for document in documents])
        masks = [
            np.ones(len(d.tokens), bool) if d.trained is None else d.trained for d in documents
        ]
        self.assertTrue((shard.trained == np.concatenate(masks)).all())

    def test_tokens_outside_the_vocabulary_and_documents_without_tokens_are_refused(self):
        def write(tokens):
            document = TokenDocument(np.array(tokens, np.uint32))
            write_token_shard(self.folder / "a.tok", ShardInfo(5, "five", "train"), [document])

        for tokens in ([1, 5], []):
            with self.assertRaises(ValueError):
                write(tokens)
        with self.assertRaises(ValueError):
            write_token_shard(self.folder / "a.tok", ShardInfo(5, "five", "train"), [])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_name_that_does_not_fit_the_header_is_refused_before_the_work(self):
        with self.assertRaises(ValueError):
            ShardWriter(self.folder / "a.tok", ShardInfo(5, "n" * 65, "train"))
        self.assertEqual(list(self.folder.iterdir()), [])

    def most_memory(self, megabytes):
        path = self.folder / "a.jsonl"
        with open(path, "w") as file:
            for number in range(megabytes << 5):
                file.write('{"prompt": "%d", "completion": "%s"}\n' % (number, "word " * 6550))
        tracemalloc.start()
        self.prepare(path, "--split-fraction", 0.2)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    def test_memory_does_not_grow_with_the_input(self):
        small, large = self.most_memory(8), self.most_memory(32)
        self.assertLess(large, small + (2 << 20))


if __name__ == "__main__":
    unittest.main()
