// Each command of the built binary, from the files that the one before made.

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "fault/cli/cli_fixture.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

double loss_in(const std::string& evaluation) {
  double loss = -1;
  std::sscanf(evaluation.c_str(), "loss %lf", &loss);
  return loss;
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> objects;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    objects.push_back(nlohmann::json::parse(line));
  return objects;
}

TEST_F(CliTest, SaysItsVersion) {
  const ProcessResult result = run({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, ::testing::MatchesRegex("strata [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(CliTest, DescribesEveryCommandAndEveryOption) {
  for (const char* name : {"make-model", "prepare", "plan", "train", "eval", "export", "inspect",
                           "bench", "doctor", "help-config"}) {
    EXPECT_THAT(run({"--help"}).out, HasSubstr(name));
    const ProcessResult help = run({name, "--help"});
    EXPECT_EQ(help.exit_code, 0) << name;
    std::istringstream stream(help.out);
    for (std::string line; std::getline(stream, line);) {
      const std::size_t option = line.find("  --");
      if (option == std::string::npos) continue;
      EXPECT_NE(line.find_first_not_of(' ', std::min(line.size(), std::size_t{30})),
                std::string::npos)
          << name << ": " << line;
    }
  }
}

TEST_F(CliTest, PrintsTheReferenceOfTheConfig) {
  const ProcessResult result = run({"help-config"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("| `offload.gpu_limit` |"));
}

TEST_F(CliTest, MakesAModelThatInspectFindsWhole) {
  const ProcessResult made = run(
      {"make-model", path("model"), "--preset", "tiny", "--shard-size", "200KB", "--dtype", "f32"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const ProcessResult seen = run({"inspect", path("model"), "--statistics"});
  EXPECT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_THAT(seen.out, HasSubstr("model.layers.2.mlp.down_proj.weight"));
  EXPECT_THAT(names_in("model"), IsSupersetOf({"config.json", "model.safetensors.index.json"}));
}

TEST_F(CliTest, PlansAModelThatHasOnlyItsShape) {
  ASSERT_EQ(run({"make-model", path("model"), "--preset", "llama3-8b", "--shape-only"}).exit_code,
            0);
  write("run.yaml", "model_name_or_path: " + path("model").string() + "\ncutoff_len: 128\n");
  const ProcessResult result =
      run({"plan", path("run.yaml"), "offload.gpu_limit=8GiB", "offload.cpu_limit=1GiB"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("tier cpu needs"));
}

TEST_F(CliTest, PreparesTextAndJsonlAndShowsTheShards) {
  write("a.txt", "one paragraph\n\nanother one\n\nand a third\n");
  write("b.jsonl", "{\"text\": \"first \\u00e9\"}\n{\"text\": \"second\"}\n");
  const ProcessResult text =
      run({"prepare", "--input", path("a.txt"), "--output", path("a"), "--split-fraction", "0"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("3 documents"));
  EXPECT_EQ(run({"prepare", "--input", path("b.jsonl"), "--format", "jsonl", "--output", path("b"),
                 "--split-fraction", "0"})
                .exit_code,
            0);
  const ProcessResult seen = run({"inspect", path("b/train.tok"), "--samples", "2"});
  EXPECT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_THAT(seen.out, HasSubstr("second"));
}

TEST_F(CliTest, WritesThePlanAsJson) {
  make_inputs();
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
  const ProcessResult result = run({"plan", path("run.yaml"), "--json", path("plan.json")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("where it lives"));
  const auto plan = nlohmann::json::parse(text("plan.json"));
  EXPECT_EQ(plan["format"], "strata-plan-1");
  EXPECT_GT(plan["peak_bytes"]["nvme"], 0);
  EXPECT_GT(plan["schedules"][0]["ops"].size(), 10u);
  EXPECT_FALSE(fs::exists(path("out"))) << "a plan makes nothing";
}

TEST_F(CliTest, TrainsOnAllTiersAndExportsABetterModel) {
  make_inputs();
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
  write("model/tokenizer.json", "{}");
  const std::string allowed = "allow_other_tokenizer=true";  // the shards are bytes
  const ProcessResult result = run(train({"max_steps=12", allowed}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("config   " + path("out/resolved_config.yaml").string()));
  EXPECT_THAT(result.out, HasSubstr("step 12/12 | loss "));
  EXPECT_THAT(result.out, HasSubstr("exported " + path("out/export").string()));
  EXPECT_THAT(names_in("nvme"), IsEmpty());
  EXPECT_THAT(names_in("out"), ElementsAre("export", "metrics.jsonl", "resolved_config.yaml"));
  EXPECT_THAT(names_in("out/export"),
              IsSupersetOf({"config.json", "model.safetensors", "tokenizer.json"}));
  EXPECT_EQ(run({"inspect", path("out/export")}).exit_code, 0);
  const ProcessResult before = run({"eval", path("run.yaml"), allowed});
  const ProcessResult after =
      run({"eval", path("run.yaml"), allowed, "model_name_or_path=" + path("out/export").string()});
  ASSERT_EQ(before.exit_code, 0) << before.err;
  ASSERT_EQ(after.exit_code, 0) << after.err;
  EXPECT_GT(loss_in(after.out), 0);
  EXPECT_LT(loss_in(after.out), loss_in(before.out) - 0.05);
}

TEST_F(CliTest, TrainsTheSameFromItsResolvedConfig) {
  make_inputs();
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
  ASSERT_EQ(run(train()).exit_code, 0);
  ASSERT_EQ(run({"train", path("out/resolved_config.yaml"), "output_dir=" + path("again").string()})
                .exit_code,
            0);
  EXPECT_EQ(text("out/export/model.safetensors"), text("again/export/model.safetensors"));
}

TEST_F(CliTest, WritesOneJsonObjectPerLineOfMetrics) {
  make_inputs();
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
  ASSERT_EQ(run(train({"max_steps=3", "eval_steps=2", "logging_steps=3"})).exit_code, 0);
  std::vector<int> steps, evaluations;
  for (const nlohmann::json& line : json_lines(text("out/metrics.jsonl"))) {
    if (line.contains("eval_loss")) evaluations.push_back(line["step"]);
    if (line.contains("loss")) steps.push_back(line["step"]);
  }
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
  EXPECT_THAT(evaluations, ElementsAre(0, 2, 3));
}

TEST_F(CliTest, WritesATraceAndWhatWasReached) {
  make_inputs();
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
  std::vector<std::string> traced = train({"max_steps=5"});
  for (const std::string& word : {std::string("--trace"), path("trace.json").string(),
                                  std::string("--trace-steps"), std::string("2")})
    traced.push_back(word);
  const ProcessResult result = run(traced);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("measured (median of 3)"));
  EXPECT_THAT(result.out, HasSubstr("\nNVMe read "));
  EXPECT_THAT(result.out, HasSubstr("trace    " + path("trace.json").string()));
  EXPECT_THAT(result.out, AllOf(HasSubstr("\nloaded   "), HasSubstr(" of state in "),
                                HasSubstr("FLOP/s on each device\n"), HasSubstr("\nwritten  "),
                                HasSubstr(" of weights in ")));
  std::set<int> steps;
  for (const nlohmann::json& event : nlohmann::json::parse(text("trace.json")))
    if (event["ph"] == "X" && event["cat"] != "step")
      steps.insert(event["args"]["step"].get<int>());
  EXPECT_THAT(steps, ElementsAre(3, 4));
}

TEST_F(CliTest, TracesEveryRankInOneFile) {
  make_inputs();
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
  std::vector<std::string> traced = train({"max_steps=4", "ranks=2"});
  traced.insert(traced.end(), {"--trace", path("trace.json").string(), "--trace-steps", "1"});
  const ProcessResult result = run(traced);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::map<int, std::set<int>> steps;  // by process
  std::map<int, std::string> names;
  for (const nlohmann::json& event : nlohmann::json::parse(text("trace.json"))) {
    const int process = event["pid"];
    if (event["ph"] == "X" && event["cat"] != "step")
      steps[process].insert(event["args"]["step"].get<int>());
    if (event["name"] == "process_name") names[process] = event["args"]["name"];
  }
  EXPECT_EQ(names, (std::map<int, std::string>{{1, "rank 0"}, {2, "rank 1"}}));
  EXPECT_EQ(steps, (std::map<int, std::set<int>>{{1, {3}}, {2, {3}}}));
}

TEST_F(CliTest, ExportsInAnotherDtypeAndShardSize) {
  make_inputs();
  const ProcessResult result = run({"export", "--model", path("model"), "--output", path("wide"),
                                    "--dtype", "f32", "--shard-size", "300KB"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const ProcessResult seen = run({"inspect", path("wide")});
  EXPECT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_THAT(seen.out, HasSubstr("F32"));
  EXPECT_THAT(names_in("wide"), IsSupersetOf({"model.safetensors.index.json"}));
  const ProcessResult back = run({"export", "--model", path("wide"), "--output", path("narrow")});
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(text("narrow/model.safetensors"), text("model/model.safetensors"));
  EXPECT_EQ(run({"inspect", path("narrow/model.safetensors")}).exit_code, 0);
}

TEST_F(CliTest, WritesNoEscapeCodesToFiles) {
  make_inputs();
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
  const ProcessResult result =
      run(train(), {.limits = {}, .environment = {{"TERM", "xterm-256color"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("\033")));
}

TEST_F(CliTest, ColorsATerminalUnlessToldNotTo) {
  make_inputs();
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
  std::string line;
  for (const std::string& word : command(train({"max_steps=1"}))) line += "'" + word + "' ";
  // script(1) gives its command a terminal.
  const auto shown = [&](const std::string& settings) {
    fs::remove_all(path("out"));
    return Process(path(""), {"script", "-qec", settings + line, "/dev/null"}).wait();
  };
  const ProcessResult color = shown("unset NO_COLOR; TERM=xterm ");
  if (color.exit_code == 127) GTEST_SKIP() << "no script(1) here";
  EXPECT_EQ(color.exit_code, 0) << color.out;
  EXPECT_THAT(color.out, HasSubstr("\033[1m"));
  EXPECT_THAT(shown("NO_COLOR=1 TERM=xterm ").out,
              AllOf(HasSubstr("step 1/1"), Not(::testing::ContainsRegex("\033\\[[0-9]+m"))));
}

}  // namespace
}  // namespace strata
