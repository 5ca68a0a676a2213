"""A folder in which scripts/prepare.py is run, and its shards read back by other code than writes them."""

import contextlib
import io
import json
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
import xxhash

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
GOLDEN = ROOT / "tests" / "golden" / "data"
sys.path.insert(0, str(SCRIPTS))

import prepare  # noqa: E402
from input_files import SourceError  # noqa: E402
from progress import ProgressLine  # noqa: E402

BYTE_END = 256


class Shard:
    def __init__(self, path):
        data = Path(path).read_bytes()
        fields = struct.unpack_from("<8sIIQQQQQQQ", data)
        (
            magic,
            _,
            width,
            num_tokens,
            num_documents,
            self.vocab_size,
            tokens,
            starts,
            mask,
            payload,
        ) = fields
        assert magic == b"STRATOK1" and payload == xxhash.xxh3_64(data[4096:]).intdigest()
        self.tokens = np.frombuffer(data, f"<u{width}", num_tokens, tokens)
        self.bounds = [*np.frombuffer(data, "<u8", num_documents, starts), num_tokens]
        self.trained = np.ones(num_tokens, bool)
        if mask:
            bits = np.frombuffer(data, np.uint8, (num_tokens + 7) // 8, mask)
            self.trained = np.unpackbits(bits, count=num_tokens, bitorder="little").astype(bool)

    def documents(self):
        return [self.tokens[a:b].tolist() for a, b in zip(self.bounds, self.bounds[1:])]

    def texts(self):
        """Of the byte tokenizer, the end of a document as '|'."""
        return [
            "".join("|" if t == BYTE_END else chr(t) for t in tokens) for tokens in self.documents()
        ]

    def trained_texts(self):
        return [
            "".join("|" if t == BYTE_END else chr(t) for t in self.tokens[a:b][self.trained[a:b]])
            for a, b in zip(self.bounds, self.bounds[1:])
        ]


class PrepareTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "shards"

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
        return path

    def write_lines(self, name, records):
        return self.write(name, "".join(json.dumps(record) + "\n" for record in records))

    def arguments(self, *options):
        wanted = ["prepare", "--output", str(self.output), *map(str, options)]
        if "--tokenizer" not in options:
            wanted += ["--tokenizer", "byte"]
        with mock.patch.object(sys, "argv", wanted):
            return prepare.parse_arguments()

    def prepare(self, path, *options):
        """What the program says."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            prepare.prepare(self.arguments("--input", path, *options), ProgressLine())
        return said.getvalue()

    def refusal(self, path, *options):
        with self.assertRaises(SourceError) as raised:
            self.prepare(path, *options)
        return str(raised.exception).replace(str(self.folder) + "/", "")

    def shard(self, split="train"):
        return Shard(self.output / f"{split}.tok")

    def files(self):
        return sorted(path.name for path in self.output.iterdir())
