// `strata plan` for machines that are not here: what it says, what it writes, what it refuses.

#include <nlohmann/json.hpp>

#include "fault/cli/cli_fixture.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CliPlan : public CliTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(run({"make-model", path("shape"), "--preset", "51m", "--shape-only"}).exit_code, 0);
    write("run.yaml", "model_name_or_path: " + path("shape").string() +
                          "\ncutoff_len: 256\ngradient_accumulation_steps: 2\noffload:\n"
                          "  optimizer: {cpu: 0.5, nvme: 0.5}\n");
  }
  // "plan run.yaml --machine ... extra...".
  ProcessResult plan(std::vector<std::string> extra = {}) const {
    std::vector<std::string> words{"plan", path("run.yaml"), "--machine", machine};
    words.insert(words.end(), extra.begin(), extra.end());
    return run(words);
  }

  const std::string machine = source_dir().string() + "/configs/machines/1xRTX4090-128GB.yaml";
};

// The text between a mark and the end of its line.
std::string after(const std::string& text, const std::string& mark) {
  const std::size_t begin = text.find(mark);
  if (begin == std::string::npos) return {};
  return text.substr(begin + mark.size(), text.find('\n', begin) - begin - mark.size());
}

// As a shell splits them.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool is_quoted = false;
  for (const char c : line + " ") {
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c != ' ' || is_quoted) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

TEST_F(CliPlan, PredictsARunOnAMachineThatIsNotHere) {
  const ProcessResult result = plan();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"fits     yes, on ", "tokens/s", "MFU", "bound    by ", "where it lives", "  loading",
        "  training", "  saving", "left of the limit", "where a step's ", "  compute", "busy",
        "achieved", "written per step", "training without pause", "of masters and moments",
        "\nstop     ", "what would help"})
    EXPECT_THAT(result.out, HasSubstr(part));
}

TEST_F(CliPlan, SaysWhetherAStopFitsInTheGracePeriod) {
  EXPECT_THAT(plan().out, HasSubstr("to end a step, "));
  EXPECT_THAT(plan({"grace_period=3600"}).out, HasSubstr("; fits in grace_period: 3600"));
  EXPECT_THAT(plan({"grace_period=1e-6"}).out, HasSubstr("; does NOT fit in grace_period: 1e-06"));
}

TEST_F(CliPlan, SaysTheSameEachTime) { EXPECT_EQ(plan().out, plan().out); }

TEST_F(CliPlan, TakesItsInputsByNameInAnyOrder) {
  const ProcessResult named = run({"plan", "--machine", machine, "--config", path("run.yaml"),
                                   "--model", path("shape"), "offload.state_slots=5"});
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(named.out, plan({"offload.state_slots=5"}).out);
}

TEST_F(CliPlan, NeedsNoConfigFile) {
  const ProcessResult result = run({"plan", "--model", path("shape"), "--machine", machine,
                                    "cutoff_len=128", "offload.optimizer=nvme"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("1 x 128 tokens"));
}

TEST_F(CliPlan, HelpsWithSettingsThatCanBePasted) {
  const ProcessResult result = plan();
  const std::size_t help = result.out.find("what would help most");
  ASSERT_NE(help, std::string::npos) << result.out;
  const std::string gain = after(result.out.substr(help), "  +");
  const std::string keys = after(result.out.substr(help), "          ");
  EXPECT_THAT(gain, HasSubstr("%"));
  const ProcessResult then = plan(words_of(keys));
  EXPECT_EQ(then.exit_code, 0) << keys << ": " << then.err;
  EXPECT_NE(after(then.out, "step     "), after(result.out, "step     "));
}

TEST_F(CliPlan, TabulatesNeighbours) {
  const ProcessResult result = plan({"--what-if"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* row : {"what if", "as planned", "optimizer gpu 100%", "optimizer nvme 100%",
                          "micro-batch x2", "accumulation x4", "4 times the batch"})
    EXPECT_THAT(result.out, HasSubstr(row));
}

TEST_F(CliPlan, FindsAPlanThatIsNoSlower) {
  const ProcessResult result = plan({"--auto", "--json", path("auto.json")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(plan({"--json", path("plain.json")}).exit_code, 0);
  const auto step = [&](const char* name) {
    return nlohmann::json::parse(text(name))["prediction"]["step_seconds"].get<double>();
  };
  EXPECT_LE(step("auto.json"), step("plain.json"));
  const std::string keys = after(result.out, "auto     ");
  const ProcessResult pasted = plan(words_of(keys));
  ASSERT_EQ(pasted.exit_code, 0) << keys << ": " << pasted.err;
  EXPECT_EQ(after(pasted.out, "plan     "), after(result.out, "plan     ")) << keys;
}

TEST_F(CliPlan, WritesJsonTraceAndPicture) {
  const ProcessResult result =
      plan({"--json", path("plan.json"), "--trace", path("trace.json"), "--svg", path("plan.svg")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(text("plan.json"));
  EXPECT_EQ(json["format"], "strata-plan-1");
  EXPECT_EQ(json["prediction"]["format"], "strata-prediction-1");
  EXPECT_GT(json["prediction"]["tokens_per_s"], 0);
  EXPECT_TRUE(nlohmann::json::accept(text("trace.json")));
  EXPECT_THAT(text("plan.svg"), AllOf(::testing::StartsWith("<svg"), HasSubstr("GPU compute"),
                                      ::testing::EndsWith("</svg>\n")));
  EXPECT_THAT(result.out, HasSubstr("wrote " + path("plan.svg").string()));
}

TEST_F(CliPlan, SaysThatItKnowsNoTimesWithoutAMachine) {
  const ProcessResult result =
      run({"plan", "--model", path("shape"), "cutoff_len=64", "offload.optimizer=cpu"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("where it lives"), HasSubstr("give --machine FILE"),
                                Not(HasSubstr("tokens/s"))));
}

TEST_F(CliPlan, RefusesWhatNeedsAMachineWithoutOne) {
  for (const char* option : {"--auto", "--what-if"}) {
    const ProcessResult result = run({"plan", path("run.yaml"), option});
    EXPECT_EQ(result.exit_code, exit_usage);
    EXPECT_THAT(result.err, AllOf(HasSubstr(option), HasSubstr("--machine")));
  }
  for (const char* option : {"--svg", "--trace"}) {
    const ProcessResult result = run({"plan", path("run.yaml"), option, path("file")});
    EXPECT_EQ(result.exit_code, exit_usage);
    EXPECT_THAT(result.err, AllOf(HasSubstr(option), HasSubstr("--machine")));
    EXPECT_FALSE(fs::exists(path("file")));
  }
}

TEST_F(CliPlan, RefusesTwoConfigFilesAndMissingOnes) {
  ProcessResult result = plan({"--config", path("run.yaml")});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, HasSubstr("two config files"));
  result = run({"plan", path("absent.yaml")});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, HasSubstr("absent.yaml: no such config file"));
  EXPECT_NE(run({"plan", path("run.yaml"), "--machine", path("absent.yaml")}).exit_code, 0);
  result = run({"plan", "--machine", machine});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, HasSubstr("model_name_or_path is missing"));
}

// What is refused names what is not, as settings to paste.
class CliNearestFit : public CliPlan {
 protected:
  void expect_pasted_fits(std::vector<std::string> words, const std::string& tier) const {
    const ProcessResult refused = run(words);
    EXPECT_EQ(refused.exit_code, exit_failure) << refused.out;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("tier " + tier + " needs"), HasSubstr("largest:"),
                                   HasSubstr("the nearest that fits: ")));
    const auto settings = words_of(after(refused.err, "the nearest that fits: "));
    ASSERT_FALSE(settings.empty()) << refused.err;
    words.insert(words.end(), settings.begin(), settings.end());
    const ProcessResult pasted = run(words);
    EXPECT_EQ(pasted.exit_code, 0) << pasted.err;
  }
  std::vector<std::string> plan_here(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"plan", "--model", path("shape"), "cutoff_len=64"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> plan_there(const std::string& name,
                                      const std::vector<std::string>& more) const {
    std::vector<std::string> words{"plan", path("run.yaml"), "--machine",
                                   source_dir().string() + "/configs/machines/" + name + ".yaml"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(CliNearestFit, OfAMachineOfOneRankCanBePasted) {
  expect_pasted_fits(
      plan_there("1xRTX4090-128GB", {"offload.optimizer=gpu", "offload.gpu_limit=500MiB"}), "gpu");
}

TEST_F(CliNearestFit, OfAMachineOfEightRanksCanBePasted) {
  expect_pasted_fits(
      plan_there("8xH100-80-1TB", {"offload.optimizer=gpu", "offload.gpu_limit=290MiB"}), "gpu");
  expect_pasted_fits(
      plan_there("8xH100-80-1TB", {"offload.optimizer=cpu", "offload.cpu_limit=3GiB"}), "cpu");
}

TEST_F(CliNearestFit, OfThisMachineCanBePasted) {
  for (const char* ranks : {"ranks=1", "ranks=2"}) {
    SCOPED_TRACE(ranks);
    expect_pasted_fits(plan_here({ranks, "offload.optimizer=gpu", "offload.gpu_limit=350MiB"}),
                       "gpu");
    expect_pasted_fits(plan_here({ranks, "offload.cpu_limit=800MiB", "offload.gpu_limit=1GiB"}),
                       "cpu");
  }
}

TEST_F(CliNearestFit, IsToldToBeNoneWithWhatTheSmallestLacks) {
  ProcessResult result = plan({"offload.gpu_limit=1MiB"});
  EXPECT_EQ(result.exit_code, exit_failure);
  EXPECT_THAT(result.err, AllOf(HasSubstr("tier gpu needs"), HasSubstr("nothing near fits"),
                                HasSubstr("missing)")));
  result = run(plan_here({"ranks=2", "offload.cpu_limit=60MiB", "offload.gpu_limit=60MiB"}));
  EXPECT_EQ(result.exit_code, exit_failure);
  EXPECT_THAT(result.err, AllOf(HasSubstr("nothing near fits"), HasSubstr("missing)")));
}

TEST_F(CliPlan, TakesWeightsOfDrivesThatAreAsManyAsTheMachines) {
  const auto with_weights = [&](const std::string& weights) {
    return run({"plan", path("run.yaml"), "--machine",
                source_dir().string() + "/configs/machines/8xH100-80-1TB.yaml",
                "offload.optimizer=nvme", "offload.nvme_paths=[a, b]",
                "offload.nvme_weights=" + weights});
  };
  const ProcessResult alike = with_weights("[1, 1, 1, 1, 1, 1, 1, 1]");
  EXPECT_EQ(alike.exit_code, 0) << alike.err;
  const ProcessResult uneven = with_weights("[9, 1, 1, 1, 1, 1, 1, 1]");
  EXPECT_EQ(uneven.exit_code, 0) << uneven.err;
  EXPECT_NE(after(alike.out, "\nplan "), after(uneven.out, "\nplan "));
  const ProcessResult others = with_weights("[1, 9]");
  EXPECT_EQ(others.exit_code, 0) << others.err;
  EXPECT_THAT(others.err, HasSubstr("offload.nvme_weights are not of the 8 drives"));
  EXPECT_EQ(after(alike.out, "\nplan "), after(others.out, "\nplan "));
}

}  // namespace
}  // namespace strata
