"""The shards of a folder, train.tok and heldout.tok: written in bounded memory, and replaced together."""

import fcntl
import json
import os
import struct
import tempfile
from contextlib import suppress

import numpy as np
import xxhash

from documents import SourceError
from token_shard import ShardInfo, ShardWriter, TokenDocument, sync_folder

STATE_FILE = "prepare.json"
SPLITS = ("train", "heldout")
TRAINED = np.uint32(1 << 31)  # No token has this bit: vocabularies have at most 2^31 - 1 entries.


def heldout_mask(num_documents, fraction, seed):
    """The documents whose hashed index is smallest are held out, so the choice needs no state."""
    count = min(max(int(num_documents * fraction + 0.5), 1), num_documents - 1)
    keys = np.fromiter(
        (
            xxhash.xxh3_64_intdigest(struct.pack("<QQ", seed, index))
            for index in range(num_documents)
        ),
        np.uint64,
        num_documents,
    )
    largest = np.partition(keys, count - 1)[count - 1]
    held = keys < largest
    ties = np.flatnonzero(keys == largest)
    held[ties[: count - np.count_nonzero(held)]] = True
    return held


class DocumentSpool:
    """Documents on the disk, in files without a name: who is held out is known when all have been counted."""

    def __init__(self, folder):
        self._tokens = tempfile.TemporaryFile(dir=folder)
        self._lengths = tempfile.TemporaryFile(dir=folder)
        self.num_documents = 0

    def add(self, document):
        tokens = document.tokens.astype(np.uint32)
        tokens[slice(None) if document.trained is None else document.trained] |= TRAINED
        self._tokens.write(tokens.tobytes())
        self._lengths.write(struct.pack("<Q", len(tokens)))
        self.num_documents += 1

    def documents(self):
        self._tokens.seek(0)
        self._lengths.seek(0)
        for _ in range(self.num_documents):
            (length,) = struct.unpack("<Q", self._lengths.read(8))
            tokens = np.frombuffer(self._tokens.read(4 * length), np.uint32)
            yield TokenDocument(tokens & ~TRAINED, tokens >= TRAINED)

    def close(self):
        for file in (self._tokens, self._lengths):
            with suppress(OSError):
                file.close()


class ShardSet:
    """One program at a time writes to a folder. What lies there stays until all that replaces it is complete."""

    def __init__(self, folder, tokenizer, source_hash, fraction, seed):
        self._folder, self._tokenizer, self._source_hash = folder, tokenizer, source_hash
        self._fraction, self._seed = fraction, seed
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = self._locked()
        self._remove("*.tok.partial")  # of a program that was killed
        self.writers = {}
        self._spool = DocumentSpool(folder) if fraction else None
        self._writer("train")

    def _locked(self):
        lock = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise SourceError(
                f"another prepare.py writes to {self._folder}; give --output another folder, or wait"
            ) from None
        except OSError:
            pass  # Some network file systems do not lock folders.
        return lock

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for writer in self.writers.values():
            writer.discard()
        if self._spool:
            self._spool.close()
        os.close(self._lock)

    def _remove(self, pattern):
        for path in self._folder.glob(pattern):
            path.unlink()

    def _writer(self, split):
        if split not in self.writers:
            info = ShardInfo(
                self._tokenizer.vocab_size,
                self._tokenizer.name,
                split,
                self._tokenizer.hash,
                self._source_hash,
            )
            self.writers[split] = ShardWriter(self._folder / f"{split}.tok", info)
        return self.writers[split]

    def add(self, document):
        (self._spool or self._writer("train")).add(document)

    def _divide(self):
        if self._spool.num_documents < 2:
            raise SourceError("--split-fraction needs at least two documents")
        held = heldout_mask(self._spool.num_documents, self._fraction, self._seed)
        for is_held, document in zip(held, self._spool.documents()):
            self._writer("heldout" if is_held else "train").add(document)

    def finish(self, state):
        """Puts the new shards in the place of the old ones, and `state` beside them once all are there."""
        if self._spool:
            self._divide()
        for writer in self.writers.values():
            writer.finish()
        # A train.tok beside a heldout.tok of another split would mislead: better none for a moment.
        (self._folder / STATE_FILE).unlink(missing_ok=True)
        for split in SPLITS:
            (self._folder / f"{split}.tok").unlink(missing_ok=True)
        sync_folder(self._folder)
        for writer in self.writers.values():
            writer.publish()
        partial = self._folder / (STATE_FILE + ".partial")
        partial.write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
        os.replace(partial, self._folder / STATE_FILE)


def is_current(folder, splits, state):
    """Whether the folder holds the shards that were made from `state`."""
    path = folder / STATE_FILE
    if not path.is_file() or not all((folder / f"{split}.tok").is_file() for split in splits):
        return False
    try:
        return json.loads(path.read_text(encoding="utf-8")) == state
    except ValueError:
        return False
