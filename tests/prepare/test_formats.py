"""The formats that fine-tuning data comes in."""

import gzip
import importlib.util
import io
import json
import unittest
from unittest import mock

from prepared import GOLDEN, PrepareTest  # First: it says where the scripts are.

import input_files
from input_files import JsonArray

ALPACA = {"instruction": "Add.", "input": "2+2", "output": "4"}
SHAREGPT = {
    "conversations": [
        {"from": "human", "value": "Hi"},
        {"from": "gpt", "value": "Ho"},
        {"from": "human", "value": "Bye"},
    ]
}
TEMPLATE = (
    "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }};{% endfor %}"
    "{% if add_generation_prompt %}<a>{% endif %}"
)


class Formats(PrepareTest):
    def prepare_chat(self, records, *options):
        template = self.write("template.jinja", TEMPLATE)
        path = self.write_lines("data.jsonl", records)
        return self.prepare(path, "--chat-template", template, *options)

    def refusal_of_chat(self, record):
        template = self.write("template.jinja", TEMPLATE)
        return self.refusal(self.write_lines("data.jsonl", [record]), "--chat-template", template)

    def test_alpaca_is_rendered_by_the_chat_template_and_only_the_output_trained(self):
        said = self.prepare_chat([ALPACA, {"instruction": "Hi", "output": "Ho"}])
        self.assertIn("data.jsonl holds Alpaca records", said)
        self.assertEqual(self.shard().texts(), ["<u>Add.\n2+2;<a>4;|", "<u>Hi;<a>Ho;|"])
        self.assertEqual(self.shard().trained_texts(), ["4;|", "Ho;|"])

    def test_alpaca_has_its_system_text_and_history_before(self):
        self.prepare_chat([ALPACA | {"system": "Be brief.", "history": [["1+1", "2"]]}])
        self.assertEqual(self.shard().texts(), ["<s>Be brief.;<u>1+1;<a>2;<u>Add.\n2+2;<a>4;|"])
        self.assertEqual(self.shard().trained_texts(), ["2;4;|"])

    def test_alpaca_takes_its_own_prompt_where_asked(self):
        path = self.write_lines("data.jsonl", [ALPACA, ALPACA | {"input": ""}])
        self.prepare(path, "--prompt-template", "alpaca")
        with_input, alone = self.shard().texts()
        self.assertTrue(
            with_input.startswith("Below is an instruction that describes a task, paired")
        )
        self.assertTrue(
            with_input.endswith("### Instruction:\nAdd.\n\n### Input:\n2+2\n\n### Response:\n4|")
        )
        self.assertTrue(alone.endswith("request.\n\n### Instruction:\nAdd.\n\n### Response:\n4|"))
        self.assertEqual(self.shard().trained_texts(), ["4|", "4|"])

    def test_the_prompt_of_alpaca_refuses_what_it_has_no_place_for(self):
        path = self.write_lines("data.jsonl", [ALPACA, ALPACA | {"system": "Be brief."}])
        self.assertIn("data.jsonl:2", self.refusal(path, "--prompt-template", "alpaca"))
        path = self.write_lines("text.jsonl", [{"text": "a"}])
        self.assertIn("Alpaca's only", self.refusal(path, "--prompt-template", "alpaca"))

    def test_only_the_assistant_of_sharegpt_is_trained(self):
        said = self.prepare_chat([SHAREGPT, SHAREGPT | {"system": "Be brief."}])
        self.assertIn("data.jsonl holds ShareGPT records", said)
        self.assertEqual(
            self.shard().texts(), ["<u>Hi;<a>Ho;<u>Bye;|", "<s>Be brief.;<u>Hi;<a>Ho;<u>Bye;|"]
        )
        self.assertEqual(self.shard().trained_texts(), ["Ho;|", "Ho;|"])

    def test_sharegpt_may_name_its_turns_as_messages_do(self):
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
        self.prepare_chat([{"conversations": turns}])
        self.assertEqual(self.shard().trained_texts(), ["Ho;|"])

    def test_sharegpt_refuses_tools_and_speakers_that_it_does_not_know(self):
        def said_by(speaker):
            return {"conversations": [{"from": speaker, "value": "x"}]}

        self.assertIn("'tool_calls'", self.refusal_of_chat(said_by("observation")))
        self.assertIn("turn 0 is of 'bard'", self.refusal_of_chat(said_by("bard")))
        self.assertIn("'tools'", self.refusal_of_chat(SHAREGPT | {"tools": "[{}]"}))
        self.assertIn("one at least", self.refusal_of_chat({"conversations": []}))

    def test_sharegpt_refuses_two_system_texts(self):
        turns = [{"from": "system", "value": "S"}, *SHAREGPT["conversations"]]
        refusal = self.refusal_of_chat({"conversations": turns, "system": "Be brief."})
        self.assertIn("leave one out", refusal)

    def test_an_assistant_that_speaks_first_is_refused_where_the_template_needs_someone_before(
        self,
    ):
        template = self.write("template.jinja", "{{ messages[0].content }}" + TEMPLATE)
        turns = [{"from": "gpt", "value": "Hi"}, {"from": "human", "value": "Ho"}]
        path = self.write_lines("data.jsonl", [{"conversations": turns}])
        refusal = self.refusal(path, "--chat-template", template)
        self.assertIn("data.jsonl:1: the assistant speaks first", refusal)
        self.prepare_chat([{"conversations": turns}])
        self.assertEqual(self.shard().trained_texts(), ["Hi;|"])

    def test_conversations_without_a_chat_template_are_refused_with_what_to_give(self):
        path = self.write_lines("data.jsonl", [ALPACA])
        self.assertIn("--chat-template, or --prompt-template alpaca", self.refusal(path))
        # No record could be rendered, so it is not the record that is bad.
        self.assertIn("--chat-template", self.refusal(path, "--skip-bad-records"))

    def test_an_array_holds_the_same_records_as_lines(self):
        records = [{"text": f"[{{'{i}'}}], \"é\\"} for i in range(5)]
        self.prepare(self.write_lines("a.jsonl", records))
        lines = self.shard().documents()
        for indent in (None, 3):
            self.prepare(self.write("a.json", " \n" + json.dumps(records, indent=indent) + "\n"))
            self.assertEqual(self.shard().documents(), lines)

    def test_records_of_an_array_may_lie_across_the_pieces_that_it_is_read_in(self):
        texts = ["x" * (700_000 + i) for i in range(6)] + ["é" * 900_000]
        self.prepare(
            self.write("a.json", json.dumps([{"text": text} for text in texts], ensure_ascii=False))
        )
        self.assertEqual(
            [len(tokens) - 1 for tokens in self.shard().documents()],
            [len(text.encode("utf-8")) for text in texts],
        )

    def test_an_array_is_the_same_in_pieces_of_any_size(self):
        records = [
            {"text": 'é🎉 \\ " ] } {'},
            {"a": [{}, [], -1.5e-300, 10**30, True, None], "": {"b": "\n\u2028"}},
            "text",
            [],
        ]
        for is_ascii in (True, False):
            data = json.dumps(records, ensure_ascii=is_ascii, indent=1).encode()
            for size in (1, 2, 3, 7, 20):
                with mock.patch.object(input_files, "CHUNK", size):
                    read = list(JsonArray("a.json", io.BytesIO(data), 1000))
                self.assertEqual([record for _, record in read], records)
                self.assertEqual(read[1][0], "a.json:5")

    def test_packed_files_are_read_like_others(self):
        for name, data in (
            ("a.jsonl.gz", '{"text": "a"}\n'),
            ("b.json.gz", '[{"text": "a"}]'),
            ("c.txt.gz", "a"),
        ):
            self.prepare(self.write(name, gzip.compress(data.encode())))
            self.assertEqual(self.shard().texts(), ["a|"])

    def test_text_that_begins_with_a_bracket_is_text(self):
        for data in ("[Illustration]\nOnce", "{x} is a set", "[1] See below."):
            self.assertIn("holds text", self.prepare(self.write("a.txt", data)))
            self.assertEqual(self.shard().texts(), [data + "|"])

    def test_a_format_that_is_given_is_not_doubted(self):
        path = self.write_lines("a.jsonl", [{"text": "a"}])
        self.prepare(path, "--format", "text")
        self.assertEqual(self.shard().texts(), ['{"text": "a"}|'])
        refusal = self.refusal(path, "--format", "alpaca")
        self.assertIn("a.jsonl:1: is one of the records with 'text', where Alpaca", refusal)
        self.assertIn(
            "'conversations'", self.refusal(self.write("b.jsonl", "{}"), "--format", "sharegpt")
        )

    def test_a_file_of_several_kinds_is_refused_at_the_first_record_of_another(self):
        records = [{"text": "a"}, {"text": "b"}, {"prompt": "c", "completion": "d"}]
        path = self.write_lines("a.jsonl", records)
        for options in ((), ("--skip-bad-records",)):
            refusal = self.refusal(path, *options)
            self.assertIn(
                "a.jsonl:3: is one of the records with 'prompt' and 'completion'", refusal
            )
            self.assertIn("--format jsonl", refusal)
        self.prepare(path, "--format", "jsonl")
        self.assertEqual(self.shard().trained_texts(), ["a|", "b|", "d|"])

    def test_documents_of_text_end_at_blank_lines_or_with_the_file(self):
        path = self.write("a.txt", "a\nb\n \t\n\n\nc\r\nd\n")
        self.prepare(path)
        self.assertEqual(self.shard().texts(), ["a\nb|", "c\r\nd|"])
        self.prepare(path, "--separator", "file")
        self.assertEqual(self.shard().texts(), ["a\nb\n \t\n\n\nc\r\nd\n|"])

    def test_several_files_follow_each_other(self):
        more = self.write("b.txt", "b\n\nc")
        self.prepare(self.write_lines("a.jsonl", [{"text": "a"}]), "--input", more)
        self.assertEqual(self.shard().texts(), ["b|", "c|"])
        said = self.prepare(self.folder / "a.jsonl", more, "--max-documents", 2)
        self.assertEqual(self.shard().texts(), ["a|", "b|"])
        self.assertIn("a.jsonl holds records with 'text'", said)
        self.assertIn("b.txt holds text", said)

    def test_the_tokens_of_a_tokenizer_do_not_depend_on_how_documents_are_batched(self):
        texts = ["In the beginning " * (i % 7 + 1) for i in range(600)]
        self.prepare(
            self.write_lines("a.jsonl", [{"text": t} for t in texts]), "--tokenizer", GOLDEN
        )
        documents = self.shard().documents()
        self.assertEqual(len(documents), 600)
        self.assertEqual(documents[:7] * 85, documents[:595])

    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "pyarrow is not installed")
    def test_rows_of_parquet_are_records(self):
        import pyarrow
        import pyarrow.parquet

        path = self.folder / "a.parquet"
        table = pyarrow.Table.from_pylist([ALPACA, {"instruction": "Hi", "output": "Ho"}])
        pyarrow.parquet.write_table(table, path)
        self.prepare(path, "--prompt-template", "alpaca")
        self.assertEqual(self.shard().trained_texts(), ["4|", "Ho|"])

    @unittest.skipIf(importlib.util.find_spec("pyarrow"), "pyarrow is installed")
    def test_parquet_without_its_package_is_refused_by_name(self):
        self.assertIn("pyarrow", self.refusal(self.write("a.parquet", b"PAR1" + bytes(100))))

    def test_the_end_says_what_there_is_and_what_rows_make_of_it(self):
        said = self.prepare(self.write("a.txt", "abc\n\nabcdefg\n\nx"), "--cutoff-len", 5)
        self.assertIn("3 documents, 14 tokens, 11 trained (78.6%)", said)
        self.assertIn("the longest has 8", said)
        self.assertIn("a.txt:3)", said)
        self.assertIn("rows of 5 tokens (cutoff_len): 3 as windows, 3 as separate documents", said)
        self.assertIn("1 documents are longer than 5 tokens", said)
        self.assertIn("cut off 3 tokens", said)


if __name__ == "__main__":
    unittest.main()
