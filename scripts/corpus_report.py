"""What the owner of a data set should know of it, counted while its documents pass."""


def percent(part, whole):
    return f"{100 * part / max(whole, 1):.1f}%"


class CorpusReport:
    def __init__(self, tokenizer, cutoff_len):
        self._bos, self._eos, self._cutoff_len = tokenizer.bos, tokenizer.eos, cutoff_len
        self.num_documents = self.num_tokens = self.trained_targets = 0
        self._empty, self._untrained = [], []  # The first place, and how often.
        self._longest, self._longest_where = 0, ""
        self._long_documents = self._cut_tokens = 0
        self._double_begins = self._unended = 0

    @staticmethod
    def _note(places, where):
        if not places:
            places.extend((where, 0))
        places[1] += 1

    def count(self, document):
        """Whether the document has a token, as all that are kept do."""
        length = len(document.tokens)
        if length == 0:
            self._note(self._empty, document.where)
            return False
        self.num_documents += 1
        self.num_tokens += length
        self._count_trained(document)
        if length > self._longest:
            self._longest, self._longest_where = length, document.where
        self._long_documents += length > self._cutoff_len
        self._cut_tokens += max(length - self._cutoff_len, 0)
        self._unended += int(document.tokens[-1]) != self._eos
        if self._bos is not None and length > 1:
            self._double_begins += bool((document.tokens[:2] == self._bos).all())
        return True

    def _count_trained(self, document):
        targets = document.trained_targets()
        self.trained_targets += targets
        if targets == 0:
            self._note(self._untrained, document.where)

    def summary(self):
        mean = self.num_tokens / self.num_documents
        rows = -(-self.num_tokens // self._cutoff_len)
        yield f"documents of {mean:.0f} tokens on average; the longest has {self._longest} ({self._longest_where})"
        fitting = "" if self._long_documents else "; no document is longer than a row"
        yield (
            f"rows of {self._cutoff_len} tokens (cutoff_len): {rows} as windows, {self.num_documents} as separate "
            f"documents{fitting}"
        )

    def warnings(self):
        if self._empty:
            yield f"{self._empty[1]} empty documents left out, the first at {self._empty[0]}"
        if self._untrained:
            yield f"{self._untrained[1]} documents have no trained token, the first at {self._untrained[0]}"
        if self._cut_tokens:
            yield (
                f"{self._long_documents} documents are longer than {self._cutoff_len} tokens: a packed or separate "
                f"layout would cut off {self._cut_tokens} tokens ({percent(self._cut_tokens, self.num_tokens)}), "
                f"windows none"
            )
        if self._double_begins:
            yield f"{self._double_begins} documents begin with two begin-of-text tokens"
        if self._eos is None:
            yield "the end-of-text token is not known, so documents without one are not counted (--eos-token)"
        elif self._unended:
            yield f"{self._unended} documents do not end with the end-of-text token (--append-eos adds it)"
