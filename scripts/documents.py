"""Reads documents from text, JSON and Parquet files, each with the parts of it that are trained."""

from dataclasses import dataclass

from input_files import (
    BLANK,
    JsonArray,
    SourceError,
    UnfitInput,
    container,
    decoded,
    json_lines,
    numbered_lines,
    open_input,
    parquet_rows,
    too_large,
)
from record_formats import KINDS, Document, kind_of, missing_fields

RECORD_BYTES_MAX = 16 << 20


@dataclass
class ReadOptions:
    format: str | None = None  # None: found from the first record
    separator: str = "blank-line"
    record_bytes_max: int = RECORD_BYTES_MAX
    notice: object = print  # called with what was found


class TextDocuments:
    """Documents of a text file: its paragraphs, or all of it."""

    def __init__(self, path, stream, options, bad_records):
        self._path, self._stream, self._bad_records = path, stream, bad_records
        self._bytes_max = options.record_bytes_max
        self._separator = options.separator

    def _document(self, number, data):
        where = f"{self._path}:{number}"
        try:
            if data is None:
                raise too_large(where, self._bytes_max)
            yield Document(decoded(self._path, number, data), where=where)
        except SourceError as error:
            self._bad_records.refuse(error)

    def _paragraph(self, lines, first, num_bytes):
        data = None if num_bytes > self._bytes_max else b"\n".join(lines)
        yield from self._document(first, data)

    def _paragraphs(self):
        """Documents are separated by one or more lines of nothing but white space."""
        lines, first, num_bytes = [], None, -1
        for number, line in numbered_lines(self._stream, self._bytes_max):
            if line is not None and not line.strip(BLANK):
                if first:
                    yield from self._paragraph(lines, first, num_bytes)
                lines, first, num_bytes = [], None, -1
                continue
            first = first or number
            num_bytes += self._bytes_max + 1 if line is None else len(line) + 1
            if num_bytes <= self._bytes_max:
                lines.append(line)
            else:
                lines = []
        if first:
            yield from self._paragraph(lines, first, num_bytes)

    def __iter__(self):
        if self._separator == "blank-line":
            yield from self._paragraphs()
        elif data := self._stream.read(self._bytes_max + 1):
            yield from self._document(1, data if len(data) <= self._bytes_max else None)


class RecordDocuments:
    """Documents of records, which are all of one kind unless the format says that they need not be."""

    def __init__(self, path, options, render, bad_records):
        self._path, self._render, self._bad_records = path, render, bad_records
        self._notice = options.notice
        self._takes_any = options.format == "jsonl"
        self._kind = options.format if options.format in KINDS else None

    def _check_kind(self, kind, where):
        if self._kind is None:
            self._kind = kind
            self._notice(f"{self._path} holds {KINDS[kind].title}")
        if kind != self._kind:
            raise UnfitInput(
                f"{where}: is one of the {KINDS[kind].title}, where {KINDS[self._kind].title} should be; "
                "split the file, or take each record by its own fields (--format jsonl)"
            )

    def _document(self, record, where):
        if not isinstance(record, dict):
            raise SourceError(f"{where}: a record must be a JSON object")
        kind = kind_of(record) or self._kind
        if kind is None:
            raise SourceError(f"{where}: {missing_fields(record)}")
        if not self._takes_any:
            self._check_kind(kind, where)
        return self._render(kind, record, where)

    def read(self, records):
        for where, record in records:
            try:
                document = self._document(record, where)
            except UnfitInput:
                raise
            except SourceError as error:
                self._bad_records.refuse(error)
                continue
            yield document


def records_of(path, kind, options, reading, bad_records):
    if kind == "parquet":
        yield from parquet_rows(path, reading)
        return
    with open_input(path, reading) as stream:
        if kind == "array":
            yield from JsonArray(path, stream, options.record_bytes_max)
        else:
            yield from json_lines(path, stream, options.record_bytes_max, bad_records)


def file_documents(path, options, render, reading, bad_records):
    kind = "text" if options.format == "text" else container(path)
    if kind == "tokens":
        raise SourceError(
            f"{path} looks like tokens, not text; give --format nanogpt, megatron or text"
        )
    if kind == "text" and options.format not in (None, "text"):
        kind = "lines"
    if kind != "text":
        records = records_of(path, kind, options, reading, bad_records)
        yield from RecordDocuments(path, options, render, bad_records).read(records)
        return
    if options.format is None:
        end = "blank lines" if options.separator == "blank-line" else "the end of the file"
        options.notice(f"{path} holds text; a document ends at {end}")
    with open_input(path, reading) as stream:
        yield from TextDocuments(path, stream, options, bad_records)


def read_documents(paths, options, render, reading, bad_records):
    for path in paths:
        yield from file_documents(path, options, render, reading, bad_records)
        reading.finish(path)
