"""Writes token shards: the binary layout of include/strata/data/token_shard.hpp, byte for byte as the engine does."""

import os
import struct
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash

MAGIC = b"STRATOK1"
VERSION = 1
HEADER_BYTES = 4096
ALIGNMENT = 64
U16_VOCABULARY = 65536
HEADER = struct.Struct("<8sIIQQQQQQQQ64s32sQ")
PENDING_TOKENS = 1 << 20
COPY_BYTES = 1 << 20


@dataclass
class TokenDocument:
    tokens: np.ndarray  # u32
    trained: np.ndarray | None = None  # bool; None: all
    where: str = ""  # the place that it was read from

    def trained_targets(self):
        """A document's first token is nobody's target."""
        if self.trained is None:
            return len(self.tokens) - 1
        return int(np.count_nonzero(self.trained[1:]))


@dataclass
class ShardInfo:
    vocab_size: int
    tokenizer: str
    split: str
    tokenizer_hash: int = 0
    source_hash: int = 0


def padding(num_bytes):
    return bytes(-num_bytes % ALIGNMENT)


def fixed_text(text, size, what):
    data = text.encode("utf-8")
    if len(data) > size:
        raise ValueError(f"{what} '{text}' is longer than {size} bytes")
    return data


def sync_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ShardWriter:
    """Writes a shard as its documents come, in memory that does not grow with them.

    The file has its name from publish() on; until then it is PATH.partial, and without a header until finish().
    """

    def __init__(self, path, info):
        self.path = Path(path)
        self._info = info
        self._names = (
            fixed_text(info.tokenizer, 64, "tokenizer name"),
            fixed_text(info.split, 32, "split"),
        )
        self.num_documents = self.num_tokens = self.trained_targets = 0
        self._partial = self.path.with_name(self.path.name + ".partial")
        # What comes behind the tokens waits in files without a name: nothing of them outlives the process.
        self._starts = tempfile.TemporaryFile(dir=self.path.parent)
        self._masks = tempfile.TemporaryFile(dir=self.path.parent)
        self._file = open(self._partial, "wb")
        self._file.write(bytes(HEADER_BYTES))
        self._hash = xxhash.xxh3_64()
        self._pending, self._num_pending = [], 0
        self._bits = np.zeros(0, bool)  # fewer than 8, of a byte that is not full
        self._has_untrained = False

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.discard()

    def add(self, document):
        if len(document.tokens) == 0:
            raise ValueError("a document of a token shard needs a token")
        self.num_documents += 1
        self.trained_targets += document.trained_targets()
        self._pending.append(document)
        self._num_pending += len(document.tokens)
        if self._num_pending >= PENDING_TOKENS:
            self._write_pending()

    def _write(self, data):
        self._file.write(data)
        self._hash.update(data)

    def _write_pending(self):
        documents, self._pending, self._num_pending = self._pending, [], 0
        if documents:
            self._write_starts(documents)
            self._write_mask(documents)
            self._write_tokens(np.concatenate([document.tokens for document in documents]))

    def _write_starts(self, documents):
        ends = self.num_tokens + np.cumsum([len(document.tokens) for document in documents])
        self._starts.write(np.concatenate([[self.num_tokens], ends[:-1]]).astype("<u8").tobytes())

    def _write_mask(self, documents):
        masks = [
            np.ones(len(document.tokens), bool) if document.trained is None else document.trained
            for document in documents
        ]
        bits = np.concatenate([self._bits, *masks])
        whole = len(bits) - len(bits) % 8
        self._masks.write(np.packbits(bits[:whole], bitorder="little").tobytes())
        self._has_untrained = self._has_untrained or not bits.all()
        self._bits = bits[whole:]

    def _write_tokens(self, tokens):
        vocab_size = self._info.vocab_size
        if tokens.max() >= vocab_size:
            raise ValueError(f"token {tokens.max()} is outside the vocabulary of {vocab_size}")
        self._write(tokens.astype("<u2" if vocab_size <= U16_VOCABULARY else "<u4").tobytes())
        self.num_tokens += len(tokens)

    def _append(self, part):
        part.seek(0)
        while data := part.read(COPY_BYTES):
            self._write(data)

    def _header(self, offsets):
        fields = HEADER.pack(
            MAGIC,
            VERSION,
            2 if self._info.vocab_size <= U16_VOCABULARY else 4,
            self.num_tokens,
            self.num_documents,
            self._info.vocab_size,
            *offsets,
            self._hash.intdigest(),
            self._info.tokenizer_hash,
            *self._names,
            self._info.source_hash,
        )
        return fields + bytes(HEADER_BYTES - len(fields))

    def _write_parts(self):
        """The offsets of the parts; there is no mask when every token is trained."""
        self._write(padding(self._file.tell()))
        starts = self._file.tell()
        self._append(self._starts)
        if not self._has_untrained:
            return HEADER_BYTES, starts, 0
        self._write(padding(self._file.tell()))
        mask = self._file.tell()
        self._masks.write(np.packbits(self._bits, bitorder="little").tobytes())
        self._append(self._masks)
        return HEADER_BYTES, starts, mask

    def finish(self):
        """Completes the partial file on the disk. There is at least one document."""
        if self.num_documents == 0:
            raise ValueError("a token shard needs a document")
        self._write_pending()
        offsets = self._write_parts()
        self._file.seek(0)
        self._file.write(self._header(offsets))
        self._file.flush()
        os.fsync(self._file.fileno())

    def publish(self):
        os.replace(self._partial, self.path)
        sync_folder(self.path.parent)

    def discard(self):
        self._partial.unlink(missing_ok=True)
        for file in (self._file, self._starts, self._masks):
            with suppress(OSError):  # A full disk fails again as what is buffered is written.
                file.close()


def write_token_shard(path, info, documents):
    with ShardWriter(path, info) as writer:
        for document in documents:
            writer.add(document)
        writer.finish()
        writer.publish()
