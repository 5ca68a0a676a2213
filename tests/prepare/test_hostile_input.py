"""Input that breaks a rule is refused with its place, or left out and counted."""

import gzip
import unittest

from prepared import GOLDEN, PrepareTest

LINES = [
    (b'{"text": "a"}', None),
    (b'{"text": 5}', "bad.jsonl:2: 'text' must be a string"),
    (b'{"text": "\xff"}', "bad.jsonl:3: byte 11 of the line is not valid UTF-8"),
    (b"{oops", "bad.jsonl:4: not JSON"),
    (b"[1]", "bad.jsonl:5: a record must be a JSON object"),
    (b'{"txt": "b"}', "bad.jsonl:6: 'text' is missing"),
    (b'{"text": "' + b"x" * 90 + b'"}', "bad.jsonl:7: a document of more than 90 bytes"),
    (b'{"text": "\\ud800"}', "bad.jsonl:8: has half of a surrogate pair"),
    (b'{"text": ' + b"[" * 80, "bad.jsonl:9: not JSON"),
    (b'{"text": "end"}', None),
]


class HostileInput(PrepareTest):
    def test_each_bad_line_is_refused_with_its_number(self):
        for number, (bad, refusal) in enumerate(LINES, start=1):
            if refusal:
                lines = [b'{"text": "a"}'] + [b""] * (number - 2) + [bad]
                path = self.write("bad.jsonl", b"\n".join(lines))
                self.assertIn(refusal, self.refusal(path, "--max-record-bytes", 90))
        self.assertEqual(self.files(), [])

    def test_bad_lines_are_left_out_and_counted_where_asked(self):
        path = self.write("bad.jsonl", b"\n".join(line for line, _ in LINES))
        said = self.prepare(path, "--max-record-bytes", 90, "--skip-bad-records")
        self.assertEqual(self.shard().texts(), ["a|", "end|"])
        self.assertIn("8 bad records left out", said)
        self.assertIn("bad.jsonl:2: 'text' must be a string", said)

    def test_deeply_nested_json_is_a_bad_record(self):
        path = self.write("bad.jsonl", b'{"text": "a"}\n{"text": ' + b"[" * 200_000)
        self.assertIn("bad.jsonl:2: not JSON", self.refusal(path))
        self.assertIn("bad.json:1: not JSON", self.refusal(self.write("bad.json", b"[" * 200_000)))

    def test_a_line_of_the_largest_size_is_taken(self):
        line = b'{"text": "abc"}'
        for end in (b"", b"\n", b"\n" + line):
            self.prepare(self.write("a.jsonl", line + end), "--max-record-bytes", len(line))
            self.assertIn("abc|", self.shard().texts())
        self.assertIn(
            "a.jsonl:1", self.refusal(self.folder / "a.jsonl", "--max-record-bytes", len(line) - 1)
        )

    def test_bad_paragraphs_are_refused_or_left_out_with_all_their_lines(self):
        path = self.write("a.txt", b"a\n\nb\n\xff\nc\n\n" + b"y\n" * 20 + b"\nd\n")
        self.assertIn("a.txt:4: byte 1 of the line is not valid UTF-8", self.refusal(path))
        said = self.prepare(path, "--skip-bad-records", "--max-record-bytes", 30)
        self.assertEqual(self.shard().texts(), ["a|", "d|"])
        self.assertIn("a.txt:7: a document of more than 30 bytes", said)

    def test_a_file_that_is_one_document_may_be_too_large_for_it(self):
        path = self.write("a.txt", "abc")
        options = ("--separator", "file", "--max-record-bytes")
        self.assertIn("--max-record-bytes", self.refusal(path, *options, 2))
        self.prepare(path, *options, 3)
        self.assertEqual(self.shard().texts(), ["abc|"])

    def test_broken_arrays_are_refused_with_the_line(self):
        for data, refusal in (
            (
                '[{"text": "a"},\n{"text": "b"',
                "a.json:2: not JSON: Expecting ',' delimiter; is the file cut off?",
            ),
            ('[{"text": "a"}\n', "a.json:2: the JSON array does not end; is the file cut off?"),
            ('[{"text": "a"}\n{"text": "b"}]', "a.json:2: not a JSON array: '{' where , or ]"),
            (
                '[{"text": "a"},\n\n{text}' + " " * 3_000_000 + "]",
                "a.json:3: not JSON: Expecting property name",
            ),
            ('[{"text": "a"}]\nmore', "a.json:2: something follows the JSON array"),
            ("[]\n]", "a.json:2: something follows the JSON array"),
            (b'[{"text": "a"},\n\n{"text": "\xff"}]', "a.json:3: not valid UTF-8"),
            (
                '[{"text": "a"}, {"text": "' + "x" * 3_000_000,
                "a.json:1: a document of more than 2000000 bytes",
            ),
        ):
            path = self.write("a.json", data)
            self.assertIn(refusal, self.refusal(path, "--max-record-bytes", 2_000_000))

    def test_bad_records_of_an_array_are_left_out(self):
        path = self.write("a.json", '[{"text": 5},\n{"text": "a"}, 7]')
        said = self.prepare(path, "--skip-bad-records")
        self.assertEqual(self.shard().texts(), ["a|"])
        self.assertIn("a.json:2: a record must be a JSON object", said)

    def test_packed_files_that_are_cut_off_are_refused(self):
        packed = gzip.compress(b"".join(b"%d\n\n" % (i * i) for i in range(100_000)))
        self.assertIn("cannot be unpacked", self.refusal(self.write("a.txt.gz", packed[:-9])))
        self.assertIn(
            "zstd -d", self.refusal(self.write("a.jsonl.zst", b"\x28\xb5\x2f\xfd" + bytes(9)))
        )

    def test_utf16_is_refused_with_what_to_do(self):
        self.assertIn("iconv", self.refusal(self.write("a.txt", "hello".encode("utf-16"))))

    def test_a_byte_order_mark_is_no_part_of_the_first_record(self):
        for name, data in (("a.jsonl", '{"text": "a"}'), ("a.json", '[{"text": "a"}]')):
            self.prepare(self.write(name, data.encode("utf-8-sig")))
            self.assertEqual(self.shard().texts(), ["a|"])

    def test_an_input_of_bad_records_alone_says_what_is_wrong_with_them(self):
        refusal = self.refusal(self.write("a.jsonl", '{"txt": "a"}'), "--skip-bad-records")
        self.assertIn("no document; a bad record: a.jsonl:1: needs 'text'", refusal)

    def test_empty_documents_are_left_out_with_a_warning_that_names_the_first(self):
        path = self.write_lines("a.jsonl", [{"text": "a"}, {"text": ""}, {"text": ""}])
        said = self.prepare(path, "--tokenizer", GOLDEN)
        self.assertEqual(len(self.shard().documents()), 1)
        self.assertRegex(said, r"2 empty documents left out, the first at \S*a.jsonl:2")

    def test_documents_without_a_trained_token_are_counted_with_the_first(self):
        records = [{"prompt": "a", "completion": "b"}, {"prompt": "c", "completion": ""}]
        said = self.prepare(self.write_lines("a.jsonl", records), "--tokenizer", GOLDEN)
        self.assertRegex(said, r"1 documents have no trained token, the first at \S*a.jsonl:2")

    def test_a_chat_template_that_fails_is_refused_with_the_record(self):
        path = self.write_lines("a.jsonl", [{"messages": [{"role": "user", "content": "Hi"}]}])
        for template, refusal in (
            ("{% for", "the chat template is not Jinja"),
            ("{{ 1 / 0 }}", "a.jsonl:1: the chat template fails: division by zero"),
            ("{{ raise_exception('no') }}", "a.jsonl:1: the chat template refuses: no"),
        ):
            given = self.write("t.jinja", template)
            self.assertIn(refusal, self.refusal(path, "--chat-template", given))


if __name__ == "__main__":
    unittest.main()
