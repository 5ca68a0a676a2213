#include <fmt/format.h>

#include <filesystem>

#include "cli/command.hpp"
#include "cli/run_options.hpp"
#include "strata/core/error.hpp"
#include "strata/data/corpus.hpp"
#include "strata/data/text_source.hpp"
#include "strata/data/token_shard.hpp"

namespace strata {
namespace {

struct PrepareArguments {
  std::vector<std::string> inputs;
  std::string output, format = "text", separator = "blank_line";
  double split_fraction = 0.02;
  std::uint64_t seed = 42, documents_max = ~std::uint64_t{0}, cutoff_len = 2048;
};

TextSourceOptions source_options(const PrepareArguments& o) {
  TextSourceOptions options;
  options.format = o.format == "jsonl" ? TextFormat::jsonl : TextFormat::text;
  options.separator =
      o.separator == "file" ? DocumentSeparator::file : DocumentSeparator::blank_line;
  options.documents_max = o.documents_max;
  return options;
}

void write(const std::filesystem::path& folder, const std::string& split,
           const std::vector<TokenDocument>& documents, std::uint64_t source_hash) {
  if (documents.empty()) return;
  TokenShardInfo info;
  info.vocab_size = byte_tokenizer_vocab;
  info.tokenizer = "byte";
  info.split = split;
  info.source_hash = source_hash;
  const auto path = folder / (split + ".tok");
  write_token_shard(path, info, documents);
  const CorpusReport report = report_on(documents, ~std::uint64_t{0});
  fmt::print("wrote {}: {} documents, {} tokens, {} trained\n", path.string(), report.num_documents,
             report.num_tokens, report.trained_tokens);
}

int prepare(const PrepareArguments& o) {
  const std::vector<std::filesystem::path> files(o.inputs.begin(), o.inputs.end());
  TextSource source = read_text_source(files, source_options(o));
  print_warnings(warnings(report_on(source.documents, o.cutoff_len), o.cutoff_len));
  if (source.documents.empty())
    throw ConfigError("no document was found in " + o.inputs.front() +
                      (o.inputs.size() > 1 ? " and the other inputs" : ""));
  const CorpusSplit split = split_corpus(std::move(source.documents), o.split_fraction, o.seed);
  std::error_code failed;
  std::filesystem::create_directories(o.output, failed);
  if (failed) throw SystemError("create", o.output, failed.value());
  write(o.output, "train", split.train, source.hash);
  write(o.output, "heldout", split.heldout, source.hash);
  return 0;
}

}  // namespace

void add_prepare(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("prepare",
                                         "Make token shards from text with the built-in byte "
                                         "tokenizer; scripts/prepare.py uses a model's own");
  auto o = std::make_shared<PrepareArguments>();
  command->add_option("--input", o->inputs, "Text or JSONL files")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--output", o->output, "Folder for train.tok and heldout.tok")->required();
  command->add_option("--format", o->format, "What the inputs are")
      ->check(CLI::IsMember({"text", "jsonl"}))
      ->capture_default_str();
  command->add_option("--separator", o->separator, "What parts documents of a text file")
      ->check(CLI::IsMember({"blank_line", "file"}))
      ->capture_default_str();
  command->add_option("--split-fraction", o->split_fraction, "Share of documents held out")
      ->capture_default_str();
  command->add_option("--seed", o->seed, "Which documents are held out")->capture_default_str();
  command->add_option("--max-documents", o->documents_max, "Stop after so many documents");
  command->add_option("--cutoff-len", o->cutoff_len, "Warn of documents longer than this")
      ->capture_default_str();
  command->callback([&action, o] { action = [o] { return prepare(*o); }; });
}

}  // namespace strata
