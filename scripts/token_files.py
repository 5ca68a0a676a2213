"""Reads documents from tokens that other programs wrote: nanoGPT's and llm.c's .bin, Megatron's .bin and .idx."""

import struct
from pathlib import Path

import numpy as np

from input_files import MEGATRON_MAGIC, SourceError
from token_shard import TokenDocument

CHUNK_TOKENS = 1 << 20
LLM_C_MAGICS = {20240520: 2, 20240801: 4}  # and the bytes of a token
LLM_C_HEADER_BYTES = 1024
MEGATRON_HEADER = struct.Struct("<9sQBQQ")
MEGATRON_DTYPES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}


def checked_tokens(tokens, first, path, vocab_size):
    """As u32; `first` is the index of the first one in the file."""
    if len(tokens) and not 0 <= tokens.min() <= tokens.max() < vocab_size:
        index = int(np.flatnonzero((tokens < 0) | (tokens >= vocab_size))[0])
        raise SourceError(
            f"{path}: token {first + index} is {tokens[index]}, outside the tokenizer's vocabulary of {vocab_size}: "
            f"was the file made with another tokenizer, or with tokens of other size (--token-bytes)?"
        )
    return tokens.astype(np.uint32)


class NanoGptFile:
    """Nothing but tokens, u16 or u32, behind llm.c's header or none. A document ends with an end-of-text token."""

    def __init__(self, path, tokenizer, bytes_max, token_bytes=None):
        self._path, self._vocab_size, self._end = path, tokenizer.vocab_size, tokenizer.eos
        self._header_bytes, stated_bytes = self._header()
        self._width = token_bytes or stated_bytes or (2 if self._vocab_size <= 1 << 16 else 4)
        self._tokens_max = bytes_max // self._width
        if (path.stat().st_size - self._header_bytes) % self._width:
            raise SourceError(
                f"{path} does not hold whole tokens of {self._width} bytes; say how large they are (--token-bytes)"
            )

    def _header(self):
        """(bytes of it, bytes of a token); none in nanoGPT's files."""
        with open(self._path, "rb") as file:
            head = file.read(LLM_C_HEADER_BYTES)
        if len(head) < LLM_C_HEADER_BYTES:
            return 0, None
        number, _, num_tokens = struct.unpack_from("<3i", head)
        width = LLM_C_MAGICS.get(number)
        if not width:
            return 0, None
        expected = LLM_C_HEADER_BYTES + num_tokens * width
        if self._path.stat().st_size != expected:
            raise SourceError(
                f"{self._path} has {self._path.stat().st_size} bytes, where its llm.c header tells of {expected}: "
                f"is it cut off?"
            )
        return LLM_C_HEADER_BYTES, width

    def _chunks(self, reading):
        first = 0
        with open(self._path, "rb") as file:
            reading.follow(file.tell)
            file.seek(self._header_bytes)
            while data := file.read(CHUNK_TOKENS * self._width):
                tokens = np.frombuffer(data, f"<u{self._width}")
                yield first, checked_tokens(tokens, first, self._path, self._vocab_size)
                first += len(tokens)

    def _ends(self, first, tokens):
        """The indices behind which documents end. llm.c's begin with the token, so one at the very front ends none."""
        if self._end is None:
            return []
        ends = np.flatnonzero(tokens == self._end) + 1
        return ends[ends > 1] if first == 0 else ends

    def documents(self, reading):
        open_parts, begin = [], 0  # of the document that goes on, and where in the file it begins
        for first, tokens in self._chunks(reading):
            at = 0
            for end in self._ends(first, tokens):
                yield self._document([*open_parts, tokens[at:end]], begin)
                open_parts, begin, at = [], first + int(end), int(end)
            if at < len(tokens):
                open_parts.append(tokens[at:])
            self._check_length(first + len(tokens) - begin, begin)
        if open_parts:
            yield self._document(open_parts, begin)

    def _document(self, parts, begin):
        tokens = np.concatenate(parts)
        self._check_length(len(tokens), begin)
        return TokenDocument(tokens, where=f"{self._path}: token {begin}")

    def _check_length(self, length, begin):
        if length > self._tokens_max:
            end = (
                "no end-of-text token is known"
                if self._end is None
                else f"{self._end} ends documents"
            )
            raise SourceError(
                f"{self._path}: the document at token {begin} has more than {self._tokens_max} tokens, and {end}; "
                "is that right (--eos-token)? --max-record-bytes allows larger ones"
            )


class MegatronFile:
    """PATH.bin holds sequences of tokens, PATH.idx where each begins and which make a document together."""

    def __init__(self, path, tokenizer, bytes_max):
        self._bin, self._idx = megatron_pair(path)
        self._bin_bytes = self._bin.stat().st_size
        self._vocab_size, self._bytes_max = tokenizer.vocab_size, bytes_max
        self._read_index()

    def _bad_index(self, problem):
        return SourceError(
            f"{self._idx}: {problem}; was it written whole, by Megatron-LM's preprocess_data.py?"
        )

    def _read_index(self):
        with open(self._idx, "rb") as file:
            head = file.read(MEGATRON_HEADER.size)
        if not head.startswith(MEGATRON_MAGIC) or len(head) < MEGATRON_HEADER.size:
            raise self._bad_index("does not begin as the index of an indexed dataset does")
        _, version, dtype, num_sequences, num_bounds = MEGATRON_HEADER.unpack(head)
        if version != 1:
            raise self._bad_index(f"is of version {version}, and only 1 is known")
        if dtype not in MEGATRON_DTYPES:
            raise self._bad_index(f"names type {dtype}, which holds no tokens")
        self._dtype = np.dtype(MEGATRON_DTYPES[dtype])
        self._map_parts(num_sequences, num_bounds)

    def _map_parts(self, num_sequences, num_bounds):
        size = self._idx.stat().st_size
        wanted = MEGATRON_HEADER.size + 12 * num_sequences + 8 * num_bounds
        if num_sequences == 0 or num_bounds < 2 or size not in (wanted, wanted + num_sequences):
            raise self._bad_index(
                f"has {size} bytes, and {num_sequences} sequences of {num_bounds - 1} documents take {wanted}"
            )
        lengths = MEGATRON_HEADER.size
        starts = lengths + 4 * num_sequences
        bounds = starts + 8 * num_sequences
        self._lengths = np.memmap(self._idx, "<i4", "r", lengths, (num_sequences,))
        self._starts = np.memmap(self._idx, "<i8", "r", starts, (num_sequences,))
        self._bounds = np.memmap(self._idx, "<i8", "r", bounds, (num_bounds,))

    def _sequence(self, file, index):
        length, start = int(self._lengths[index]), int(self._starts[index])
        num_bytes = length * self._dtype.itemsize
        if length < 0 or start < 0 or start + num_bytes > self._bin_bytes:
            raise self._bad_index(f"sequence {index} lies outside {self._bin}")
        if num_bytes > self._bytes_max:
            raise SourceError(
                f"{self._bin}: sequence {index} has {num_bytes} bytes; --max-record-bytes allows more than "
                f"{self._bytes_max}"
            )
        file.seek(start)
        tokens = np.frombuffer(file.read(num_bytes), self._dtype)
        return checked_tokens(tokens, start // self._dtype.itemsize, self._bin, self._vocab_size)

    def _document(self, file, document):
        first, last = int(self._bounds[document]), int(self._bounds[document + 1])
        if not 0 <= first <= last <= len(self._lengths):
            raise self._bad_index(f"document {document} has sequences {first} to {last}")
        parts, num_bytes = [np.zeros(0, np.uint32)], 0
        for index in range(first, last):
            parts.append(self._sequence(file, index))
            num_bytes += len(parts[-1]) * self._dtype.itemsize
            if num_bytes > self._bytes_max:
                raise SourceError(
                    f"{self._bin}: document {document} has more than {self._bytes_max} bytes; --max-record-bytes "
                    f"allows larger ones"
                )
        return TokenDocument(np.concatenate(parts), where=f"{self._bin}: document {document}")

    def documents(self, reading):
        num_documents = len(self._bounds) - 1
        document = 0
        reading.follow(lambda: self._bin_bytes * document / num_documents)
        if int(self._bounds[0]) != 0 or int(self._bounds[-1]) != len(self._lengths):
            raise self._bad_index("leaves out sequences at its begin or end")
        with open(self._bin, "rb") as file:
            for document in range(num_documents):
                yield self._document(file, document)


def megatron_pair(path):
    """(.bin, .idx) of either."""
    pair = Path(path).with_suffix(".bin"), Path(path).with_suffix(".idx")
    for part in pair:
        if not part.is_file():
            raise SourceError(
                f"{part} does not exist; Megatron's data is a .bin and an .idx beside it"
            )
    return pair


def read_token_files(paths, arguments, tokenizer, reading):
    for path in paths:
        if arguments.format == "megatron":
            file = MegatronFile(path, tokenizer, arguments.max_record_bytes)
        else:
            file = NanoGptFile(path, tokenizer, arguments.max_record_bytes, arguments.token_bytes)
        yield from file.documents(reading)
        reading.finish(path)
