"""A program that ends half-way leaves nothing that looks whole, and what was there before."""

import fcntl
import os
import resource
import signal
import subprocess
import sys

from prepared import SCRIPTS, PrepareTest

# Runs prepare.py, and sends itself a signal after so many calls of a method of ShardWriter.
STOPPED = """
import os, sys
_, scripts, method, calls, number, *options = sys.argv
sys.path.insert(0, scripts)
sys.argv = ["prepare", *options]
import prepare
from token_shard import ShardWriter
real, left = getattr(ShardWriter, method), int(calls)

def stopping(self, *arguments):
    global left
    real(self, *arguments)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), int(number))

setattr(ShardWriter, method, stopping)
prepare.main()
"""
# Every state that the folder passes through once a shard is begun: documents, first and second shard complete, and
# each of them under its name.
STOPS = (("add", 5), ("finish", 1), ("finish", 2), ("publish", 1), ("publish", 2))


class Interruption(PrepareTest):
    def setUp(self):
        super().setUp()
        self.text = self.write("a.txt", "\n\n".join(f"document {i}" for i in range(20)))
        self.old = self.write("old.txt", "\n\n".join(f"older {i}" for i in range(20)))
        self.options = ("--split-fraction", "0.3")

    def stop(self, method, calls, number):
        command = [sys.executable, "-c", STOPPED, SCRIPTS, method, str(calls), str(int(number))]
        options = [
            "--input",
            self.text,
            "--output",
            self.output,
            "--tokenizer",
            "byte",
            *self.options,
        ]
        return subprocess.run([*command, *options], capture_output=True, text=True)

    def shards(self):
        return {path.name: path.read_bytes() for path in self.output.glob("*.tok")}

    def test_a_killed_program_leaves_whole_shards_of_one_text_or_none(self):
        self.prepare(self.text, *self.options)
        new = self.shards()
        for method, calls in STOPS:
            self.prepare(self.old, *self.options)
            old = self.shards()
            stopped = self.stop(method, calls, signal.SIGKILL)
            self.assertEqual(stopped.returncode, -signal.SIGKILL, stopped.stderr)
            left = self.shards()
            self.assertTrue(left == old or left.items() <= new.items(), (method, calls))
            self.assertEqual(left == old, method != "publish")

    def test_the_next_run_after_a_kill_makes_all_anew_and_leaves_no_scraps(self):
        self.prepare(self.text, *self.options)
        new = self.shards()
        for method, calls in STOPS:
            (self.output / "prepare.json").unlink()
            self.stop(method, calls, signal.SIGKILL)
            self.assertNotIn("up to date", self.prepare(self.text, *self.options))
            self.assertEqual(self.shards(), new)
            self.assertEqual(self.files(), ["heldout.tok", "prepare.json", "train.tok"])
        (self.output / "prepare.json").unlink()
        self.stop("finish", 2, signal.SIGKILL)
        self.assertIn("heldout.tok.partial", self.files())
        self.prepare(self.text)
        self.assertEqual(self.files(), ["prepare.json", "train.tok"])

    def test_a_program_that_is_asked_to_stop_takes_its_scraps_with_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            stopped = self.stop("add", 5, number)
            self.assertEqual((stopped.returncode, stopped.stderr), (1, "prepare: stopped\n"))
            self.assertEqual(self.files(), [])

    def test_a_full_disk_leaves_the_old_shards(self):
        self.prepare(self.old)
        old = self.shards()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        # A write beyond the limit fails as one to a full disk does: Python ignores the signal.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4200, limits[1]))
        try:
            with self.assertRaises(OSError):
                self.prepare(self.text)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual(self.shards(), old)
        self.assertEqual(self.files(), ["prepare.json", "train.tok"])

    def test_a_bad_record_at_the_end_leaves_the_old_shards(self):
        self.prepare(self.old)
        old = self.shards()
        self.refusal(self.write("bad.txt", b"a\n\nb\n\n\xff"))
        self.assertEqual(self.shards(), old)

    def test_what_is_up_to_date_is_not_made_anew_and_other_options_are(self):
        self.prepare(self.text)
        self.assertIn("up to date", self.prepare(self.text))
        self.assertNotIn("up to date", self.prepare(self.text, "--separator", "file"))
        self.assertNotIn("up to date", self.prepare(self.text, *self.options))

    def test_a_heldout_shard_of_another_split_goes(self):
        self.prepare(self.text, *self.options)
        self.prepare(self.text)
        self.assertEqual(self.files(), ["prepare.json", "train.tok"])

    def test_one_program_at_a_time_writes_to_a_folder(self):
        self.output.mkdir()
        other = os.open(self.output, os.O_RDONLY)
        self.addCleanup(os.close, other)
        fcntl.flock(other, fcntl.LOCK_SH)
        self.assertIn("another prepare.py", self.refusal(self.text))
