"""Tokens that other programs wrote."""

import struct
import unittest

import numpy as np
from prepared import GOLDEN, PrepareTest

END = 256
TOKENS = [1, 2, END, 3, END, 4, 5]


class TokenFiles(PrepareTest):
    def write_nanogpt(self, tokens=TOKENS, dtype="<u2", header=b"", name="train.bin"):
        return self.write(name, header + np.array(tokens, dtype).tobytes())

    def nanogpt(self, path, *options):
        self.prepare(path, "--format", "nanogpt", *options)
        return self.shard().documents()

    def nanogpt_refusal(self, path, *options):
        return self.refusal(path, "--format", "nanogpt", *options)

    def write_megatron(self, sequences, bounds, dtype=8, kind="<u2", **header):
        """As Megatron-LM's IndexedDatasetBuilder does; a field of the header may be another."""
        parts = [np.array(sequence, kind).tobytes() for sequence in sequences]
        lengths = np.array([len(sequence) for sequence in sequences], "<i4")
        starts = np.cumsum([0] + [len(part) for part in parts[:-1]]).astype("<i8")
        fields = {
            "magic": b"MMIDIDX\0\0",
            "version": 1,
            "dtype": dtype,
            "num_sequences": len(sequences),
        } | header
        head = struct.pack("<9sQBQQ", *fields.values(), len(bounds))
        index = head + lengths.tobytes() + starts.tobytes() + np.array(bounds, "<i8").tobytes()
        self.write("train.idx", index)
        return self.write("train.bin", b"".join(parts))

    def megatron(self, path, *options):
        self.prepare(path, "--format", "megatron", *options)
        return self.shard().documents()

    def megatron_refusal(self, path):
        return self.refusal(path, "--format", "megatron")

    def test_documents_of_nanogpt_end_with_the_end_of_text_token(self):
        self.assertEqual(self.nanogpt(self.write_nanogpt()), [[1, 2, END], [3, END], [4, 5]])
        self.assertEqual(
            self.nanogpt(self.write_nanogpt(), "--append-eos"), [[1, 2, END], [3, END], [4, 5, END]]
        )

    def test_documents_of_nanogpt_may_lie_across_the_pieces_that_it_is_read_in(self):
        tokens = np.full(5 << 20, 7)
        tokens[[1 << 20, (2 << 20) - 1, 2 << 20, (2 << 20) + 5]] = END
        lengths = [len(document) for document in self.nanogpt(self.write_nanogpt(tokens))]
        self.assertEqual(lengths, [(1 << 20) + 1, (1 << 20) - 1, 1, 5, (3 << 20) - 6])

    def test_tokens_of_four_bytes_are_read_where_said(self):
        path = self.write_nanogpt(dtype="<u4")
        self.assertEqual(self.nanogpt(path, "--token-bytes", 4), [[1, 2, END], [3, END], [4, 5]])
        self.assertIn("whole tokens", self.nanogpt_refusal(self.write("odd.bin", b"abc")))

    def test_files_of_llm_c_are_read_behind_their_header(self):
        for magic, dtype in ((20240520, "<u2"), (20240801, "<u4")):
            header = struct.pack("<256i", magic, 1, 7, *[0] * 253)
            tokens = [END, 1, 2, END, 3, 4, 5]
            path = self.write_nanogpt(tokens, dtype, header)
            self.assertEqual(self.nanogpt(path), [[END, 1, 2, END], [3, 4, 5]])
            cut = self.write_nanogpt(tokens[:-1], dtype, header, "cut.bin")
            self.assertIn("cut off", self.nanogpt_refusal(cut))

    def test_a_token_of_another_vocabulary_is_refused_with_its_index(self):
        path = self.write_nanogpt([1, 2, 257])
        self.assertIn("train.bin: token 2 is 257, outside", self.nanogpt_refusal(path))

    def test_a_document_that_does_not_end_is_refused_with_the_token_that_should_end_it(self):
        path = self.write_nanogpt([1, END, 3, 4, 5, 6])
        refusal = self.nanogpt_refusal(path, "--max-record-bytes", 6)
        self.assertIn(
            "the document at token 2 has more than 3 tokens, and 256 ends documents", refusal
        )

    def test_a_tokenizer_names_the_end_of_text_token(self):
        path = self.write_nanogpt([5, 0, 6, 0])
        documents = self.nanogpt(path, "--tokenizer", GOLDEN, "--eos-token", "<|endoftext|>")
        self.assertEqual(documents, [[5, 0], [6, 0]])

    def test_sequences_of_megatron_make_documents(self):
        for dtype, kind in ((8, "<u2"), (4, "<i4"), (5, "<i8")):
            path = self.write_megatron([[1, 2], [3], [4, 5, 6]], [0, 2, 3], dtype, kind)
            self.assertEqual(self.megatron(path), [[1, 2, 3], [4, 5, 6]])

    def test_either_or_both_files_of_megatron_may_be_named(self):
        path = self.write_megatron([[1, 2], [3]], [0, 1, 2])
        index = path.with_suffix(".idx")
        self.assertEqual(self.megatron(index), [[1, 2], [3]])
        self.prepare(path, index, "--format", "megatron", "--seed", 1)
        self.assertEqual(self.shard().documents(), [[1, 2], [3]])

    def test_a_split_of_megatron_documents_is_that_of_their_indices(self):
        path = self.write_megatron([[i] for i in range(10)], range(11))
        self.assertEqual(
            self.megatron(path, "--split-fraction", 0.3), [[i] for i in (1, 2, 3, 4, 6, 7, 8)]
        )

    def test_empty_documents_of_megatron_are_left_out(self):
        path = self.write_megatron([[1], [], [2]], [0, 1, 2, 2, 3])
        self.assertEqual(self.megatron(path), [[1], [2]])

    def test_a_hostile_index_is_refused(self):
        sequences, bounds = [[1, 2], [3]], [0, 1, 2]
        for header, refusal in (
            ({"magic": b"TNTIDX\0\0\0"}, "does not begin"),
            ({"version": 2}, "version 2"),
            ({"dtype": 6}, "type 6"),
            ({"num_sequences": 1 << 62}, "take"),
            ({"num_sequences": 0}, "take"),
        ):
            self.assertIn(
                refusal, self.megatron_refusal(self.write_megatron(sequences, bounds, **header))
            )
        for wrong in ([0, 2, 1], [1, 1, 2], [0, 1, 1], [0, 3, 2], [0, -1, 2]):
            self.assertIn(
                "train.idx: ", self.megatron_refusal(self.write_megatron(sequences, wrong))
            )

    def test_sequences_outside_the_file_are_refused(self):
        path = self.write_megatron([[1, 2], [3]], [0, 1, 2])
        path.write_bytes(path.read_bytes()[:-1])
        self.assertIn("sequence 1 lies outside", self.megatron_refusal(path))
        path = self.write_megatron([[1, 2], [3]], [0, 1, 2])
        index = bytearray((self.folder / "train.idx").read_bytes())
        struct.pack_into("<i", index, 34, -1)
        self.write("train.idx", bytes(index))
        self.assertIn("sequence 0 lies outside", self.megatron_refusal(path))

    def test_negative_tokens_are_refused(self):
        path = self.write_megatron([[1, -2]], [0, 1], 4, "<i4")
        self.assertIn("token 1 is -2", self.megatron_refusal(path))

    def test_half_of_a_pair_is_refused(self):
        path = self.write_megatron([[1]], [0, 1])
        (self.folder / "train.idx").unlink()
        self.assertIn("train.idx does not exist", self.megatron_refusal(path))

    def test_a_file_of_tokens_is_not_taken_for_text(self):
        self.assertIn("--format nanogpt", self.refusal(self.write_nanogpt()))
        self.assertIn("--format nanogpt", self.refusal(self.write_megatron([[1]], [0, 1])))

    def test_options_that_a_format_does_not_have_are_refused(self):
        path = self.write_nanogpt()
        self.assertIn("--skip-bad-records", self.nanogpt_refusal(path, "--skip-bad-records"))
        self.assertIn("--token-bytes", self.refusal(path, "--format", "text", "--token-bytes", 2))


if __name__ == "__main__":
    unittest.main()
