"""Opens input files, and reads their lines, JSON values and rows in memory that is bounded by the largest record."""

import codecs
import gzip
import json
import re
import zlib
from contextlib import contextmanager
from pathlib import Path

BLANK = b" \t\r\f\v"
BOM = codecs.BOM_UTF8
HEAD_BYTES = 1 << 16
CHUNK = 1 << 20
MEGATRON_MAGIC = b"MMIDIDX\0\0"
MAGICS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PAR1": "parquet",
    MEGATRON_MAGIC: "megatron",
}
SPACE = re.compile(r"[ \t\r\n]*")


class SourceError(Exception):
    """An input file breaks its format's rules."""


class UnfitInput(SourceError):
    """Not one bad record: the input is not what the options say."""


class BadRecords:
    """Records that break a rule end the program, or are counted and left out."""

    SHOWN = 3

    def __init__(self, are_skipped):
        self._are_skipped = are_skipped
        self.count, self.shown = 0, []

    def refuse(self, error):
        if not self._are_skipped:
            raise SourceError(f"{error}; --skip-bad-records leaves such records out")
        self.count += 1
        if self.count <= self.SHOWN:
            self.shown.append(str(error))


class Reading:
    """How far all the inputs have been read, in bytes of the files as they lie on the disk."""

    def __init__(self, paths):
        self.total_bytes = sum(path.stat().st_size for path in paths)
        self._done_bytes, self._position = 0, lambda: 0

    def follow(self, position):
        self._position = position

    def finish(self, path):
        self._done_bytes += path.stat().st_size
        self._position = lambda: 0

    def share(self):
        return min((self._done_bytes + self._position()) / max(self.total_bytes, 1), 1.0)


def magic(path):
    with open(path, "rb") as file:
        head = file.read(max(map(len, MAGICS)))
    return next((name for begin, name in MAGICS.items() if head.startswith(begin)), None)


@contextmanager
def open_input(path, reading=None):
    """The file's bytes, unpacked where it is packed."""
    with open(path, "rb") as raw:
        if reading:
            reading.follow(raw.tell)
        packed = magic(path)
        if packed == "zstd":
            raise SourceError(
                f"{path} is compressed with zstd, which is not read; unpack it (zstd -d)"
            )
        try:
            yield gzip.GzipFile(fileobj=raw) if packed == "gzip" else raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise SourceError(f"{path}: cannot be unpacked: {error}") from error


def head(path):
    with open_input(path) as stream:
        data = stream.read(HEAD_BYTES)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{path} is UTF-16; save it as UTF-8 (iconv -f utf-16 -t utf-8)")
    return data


def container(path):
    """What the file looks like: 'text', 'lines' or 'array' of JSON, 'parquet', or 'tokens'."""
    kind = magic(path)
    if kind == "parquet":
        return "parquet"
    suffixes = Path(path).suffixes
    if kind == "megatron" or (suffixes and suffixes[-1] in (".bin", ".idx")):
        return "tokens"
    begin = head(path).removeprefix(BOM).lstrip()
    if re.match(rb"\[\s*([\{\]]|$)", begin):
        return "array"
    is_named_json = any(suffix in (".json", ".jsonl", ".ndjson") for suffix in suffixes)
    return "lines" if is_named_json or re.match(rb'\{\s*(["\}]|$)', begin) else "text"


def line_error(path, number, data, error):
    line = number + data.count(b"\n", 0, error.start)
    column = error.start - data.rfind(b"\n", 0, error.start)
    return SourceError(f"{path}:{line}: byte {column} of the line is not valid UTF-8")


def decoded(path, number, data):
    """Text that begins in line `number`."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise line_error(path, number, data, error) from error


def too_large(where, bytes_max):
    return SourceError(
        f"{where}: a document of more than {bytes_max} bytes; --max-record-bytes allows larger ones"
    )


def numbered_lines(stream, bytes_max):
    """(number, line without its newline); None for a line of more than bytes_max bytes."""
    number = 0
    while line := stream.readline(bytes_max + 2):
        number += 1
        if len(line.removesuffix(b"\n")) <= bytes_max:
            yield number, line.removesuffix(b"\n")
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(CHUNK)
        yield number, None


def json_lines(path, stream, bytes_max, bad_records):
    """(where, value) of each line that is not blank."""
    for number, line in numbered_lines(stream, bytes_max):
        where = f"{path}:{number}"
        try:
            if line is None:
                raise too_large(where, bytes_max)
            text = decoded(path, number, line.removeprefix(BOM) if number == 1 else line)
            if line.strip(BLANK):
                value = parsed_line(text, where)
            else:
                continue
        except SourceError as error:
            bad_records.refuse(error)
            continue
        yield where, value


def parsed_line(text, where):
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        hint = ""
        if text.strip() in ("{", "["):
            hint = "; a JSON file holds one record a line, or one array of records"
        raise SourceError(f"{where}: not JSON: {error.msg} (column {error.colno}){hint}") from error
    except (RecursionError, ValueError) as error:
        raise SourceError(f"{where}: not JSON that can be read: {error}") from error


class JsonArray:
    """The values of one JSON array, read as they are asked for."""

    def __init__(self, path, stream, bytes_max):
        self._path, self._stream, self._bytes_max = path, stream, bytes_max
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._parse = json.JSONDecoder().raw_decode
        self._text, self._at, self._line = "", 0, 1  # The next character, and its line.
        self._has_ended = False

    def _where(self, at=None):
        at = self._at if at is None else at
        return f"{self._path}:{self._line + self._text.count(chr(10), self._at, at)}"

    def _fail(self, message, at=None):
        raise SourceError(f"{self._where(at)}: {message}")

    def _read(self):
        left = self._text[self._at :]
        data = self._stream.read(max(CHUNK, len(left)))
        self._has_ended = not data
        try:
            self._text, self._at = left + self._decoder.decode(data, final=not data), 0
        except UnicodeDecodeError as error:
            line = self._line + left.count("\n") + error.object[: error.start].count(b"\n")
            raise SourceError(f"{self._path}:{line}: not valid UTF-8") from error

    def _advance(self, to):
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _next_character(self):
        """The next one that is no space; '' at the end."""
        while True:
            self._advance(SPACE.match(self._text, self._at).end())
            if self._at < len(self._text) or self._has_ended:
                return self._text[self._at : self._at + 1]
            self._read()

    def _expect(self, characters):
        found = self._next_character()
        if not found:
            self._fail("the JSON array does not end; is the file cut off?")
        if found not in characters:
            self._fail(f"not a JSON array: {found!r} where {' or '.join(characters)} should be")
        self._advance(self._at + 1)
        return found

    def _may_go_on(self, error):
        """Whether the value ends behind what has been read so far."""
        return error.pos >= len(self._text) - 16 or error.msg.startswith("Unterminated string")

    def _value(self):
        while True:
            try:
                value, end = self._parse(self._text, self._at)
                break
            except json.JSONDecodeError as error:
                if self._has_ended:
                    self._fail(f"not JSON: {error.msg}; is the file cut off?", error.pos)
                if not self._may_go_on(error):
                    self._fail(f"not JSON: {error.msg}", error.pos)
            except (RecursionError, ValueError) as error:
                self._fail(f"not JSON that can be read: {error}")
            if len(self._text) - self._at > self._bytes_max:
                raise too_large(self._where(), self._bytes_max)
            self._read()
        where = self._where()
        self._advance(end)
        return where, value

    def _values(self):
        self._expect("[")
        if self._next_character() == "]":
            self._expect("]")
            return
        while True:
            self._next_character()
            yield self._value()
            if self._expect(",]") == "]":
                return

    def __iter__(self):
        yield from self._values()
        if self._next_character():
            self._fail("something follows the JSON array")


def without_nulls(value):
    """A table has all columns in every row."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def parquet_rows(path, reading):
    """(where, row as a dict)."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise SourceError(
            f"{path} is a Parquet file, which needs the Python package pyarrow: install it with the pip of this "
            f"interpreter, or save the data set as JSON lines"
        ) from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            rows = max(file.metadata.num_rows, 1)
            reading.follow(lambda: path.stat().st_size * number / rows)
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}: row {number}", without_nulls(row)
    except pyarrow.ArrowException as error:
        raise SourceError(f"{path}: not a Parquet file that can be read: {error}") from error
