// What cannot be done is said before anything is done: the reason, the place, and the exit code.

#include "fault/cli/cli_fixture.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CliRefusal : public CliOnDrive {
 protected:
  // Nothing was left in the way of the next try.
  void expect_no_trace() const {
    EXPECT_THAT(names_in("nvme"), IsEmpty());
    EXPECT_FALSE(fs::exists(path("out/export")));
    for (const std::string& name : names_in("out"))
      EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
  }
  void expect_refused(const std::vector<std::string>& overrides, int exit_code,
                      const ::testing::Matcher<std::string>& message) {
    const ProcessResult result = run(train(overrides));
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, message);
    expect_no_trace();
  }
};

TEST_F(CliTest, RefusesAnUnknownCommandOrNone) {
  EXPECT_EQ(run({}).exit_code, exit_usage);
  const ProcessResult result = run({"trian", "run.yaml"});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("no command 'trian'"), HasSubstr("did you mean 'train'?")));
}

TEST_F(CliTest, SaysWhenItsOutputIsLost) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  write("a.txt", "one paragraph\n\nanother one\n");
  std::vector<std::string> arguments =
      command({"prepare", "--input", path("a.txt"), "--output", path("out")});
  arguments.insert(arguments.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" > /dev/full"});
  fs::create_directory(path("output"));
  const ProcessResult result = Process(path("output"), arguments).wait();
  EXPECT_EQ(result.exit_code, exit_failure);
  EXPECT_THAT(result.err, HasSubstr("standard output"));
}

TEST_F(CliTest, PreparesNothingFromNothing) {
  write("empty.txt", "\n\n");
  const ProcessResult result =
      run({"prepare", "--input", path("empty.txt"), "--output", path("out")});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, HasSubstr("no document was found in"));
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(CliTest, NamesAConfigThatIsNotThere) {
  const ProcessResult result = run({"train", path("absent.yaml")});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, HasSubstr("absent.yaml"));
}

TEST_F(CliTest, RefusesAConfigWithoutAModel) {
  write("run.yaml", "max_steps: 1\n");
  const ProcessResult result = run({"train", path("run.yaml")});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, HasSubstr("model_name_or_path is missing"));
}

TEST_F(CliRefusal, NamesTheNearestKey) {
  expect_refused({"learning_rat=1"}, exit_usage,
                 AllOf(HasSubstr("learning_rat"), HasSubstr("learning_rate")));
}

TEST_F(CliRefusal, NamesAModelFolderThatIsNotThere) {
  expect_refused({"model_name_or_path=org/absent"}, exit_usage,
                 HasSubstr("model_name_or_path: org/absent is no folder"));
}

TEST_F(CliRefusal, NamesADatasetThatIsMissing) {
  expect_refused({"dataset=[]"}, exit_usage, HasSubstr("dataset names no token shard"));
  expect_refused({"dataset=absent.tok"}, exit_usage, HasSubstr("dataset: absent.tok is no file"));
  expect_refused({"eval_dataset=absent.tok"}, exit_usage,
                 HasSubstr("eval_dataset: absent.tok is no file"));
  EXPECT_FALSE(fs::exists(path("out/resolved_config.yaml"))) << "refused before planning";
}

TEST_F(CliRefusal, EvaluatesNothingWithoutHeldOutData) {
  const ProcessResult result =
      run({"eval", path("run.yaml"), "eval_dataset=[]", "eval_strategy=no"});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, HasSubstr("eval_dataset names no token shard"));
}

TEST_F(CliRefusal, RefusesAVocabularyThatIsNotTheModels) {
  ASSERT_EQ(run({"make-model", path("small"), "--preset", "tiny", "--vocab-size", "100"}).exit_code,
            0);
  expect_refused({"model_name_or_path=" + path("small").string()}, exit_usage,
                 AllOf(HasSubstr("vocabulary of 257"), HasSubstr("has 100")));
}

TEST_F(CliRefusal, RefusesAnExportFolderThatExists) {
  fs::create_directories(path("taken"));
  expect_refused({"export_dir=" + path("taken").string()}, exit_usage, HasSubstr("taken exists"));
  const ProcessResult result = run({"export", "--model", path("model"), "--output", path("taken")});
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, HasSubstr("taken exists already"));
  EXPECT_THAT(names_in("taken"), IsEmpty());
}

TEST_F(CliRefusal, NamesATraceThatCannotBeWritten) {
  std::vector<std::string> traced = train();
  traced.insert(traced.end(), {"--trace", path("absent/trace.json").string()});
  const ProcessResult result = run(traced);
  EXPECT_EQ(result.exit_code, exit_failure);
  EXPECT_THAT(result.err, HasSubstr("absent/trace.json"));
  expect_no_trace();
}

TEST_F(CliRefusal, NamesADriveThatIsNotThere) {
  expect_refused({"offload.nvme_paths=" + path("absent").string()}, exit_usage,
                 AllOf(HasSubstr("offload.nvme_paths"), HasSubstr("absent is not a directory")));
}

TEST_F(CliRefusal, CallsNoMemoryADrive) {
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  expect_refused({"offload.nvme_paths=/dev/shm"}, exit_usage, HasSubstr("keeps files in RAM"));
}

TEST_F(CliRefusal, NamesADriveThatCannotBeWritten) {
  if (!can_mount()) GTEST_SKIP() << "no mount namespaces here";
  std::vector<std::string> arguments = command(train());
  arguments.insert(arguments.begin(), path("nvme"));
  const ProcessResult result = run_with_mounts(
      "mount --bind \"$1\" \"$1\"\nmount -o remount,bind,ro \"$1\"\nshift\nexec \"$@\"", arguments);
  EXPECT_EQ(result.exit_code, exit_usage) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("cannot be written"), HasSubstr("Read-only file system")));
  expect_no_trace();
}

TEST_F(CliRefusal, SaysWhatATierNeedsThatIsTooSmall) {
  expect_refused({"offload.gpu_limit=100KiB"}, exit_failure,
                 AllOf(HasSubstr("tier gpu needs"), HasSubstr("largest:"),
                       HasSubstr("raise offload.gpu_limit")));
}

TEST_F(CliRefusal, RefusesRowsLongerThanTheModelKnows) {
  expect_refused({"cutoff_len=100000"}, exit_usage, HasSubstr("max_position_embeddings"));
}

TEST_F(CliRefusal, FindsADamagedShard) {
  damage("data/train.tok");
  expect_refused({}, exit_failure, HasSubstr("train.tok"));
  EXPECT_NE(run({"inspect", path("data/train.tok")}).exit_code, 0);
}

TEST_F(CliRefusal, FindsATruncatedShard) {
  fs::resize_file(path("data/train.tok"), fs::file_size(path("data/train.tok")) - 100);
  expect_refused({}, exit_failure, HasSubstr("train.tok"));
}

TEST_F(CliRefusal, FindsATruncatedModelFile) {
  fs::resize_file(path("model/model.safetensors"),
                  fs::file_size(path("model/model.safetensors")) - 2);
  expect_refused({}, exit_failure, HasSubstr("model.safetensors"));
  EXPECT_NE(run({"inspect", path("model")}).exit_code, 0);
}

TEST_F(CliRefusal, FindsADamagedHeaderOfAModelFile) {
  std::string bytes = text("model/model.safetensors");
  bytes.replace(bytes.find("BF16"), 4, "BF61");
  write("model/model.safetensors", bytes);
  expect_refused({}, exit_failure, HasSubstr("model.safetensors"));
}

TEST_F(CliRefusal, WarnsOfAnEvaluationBatchThatIsNotUsed) {
  const ProcessResult result = run({"plan", path("run.yaml"), "per_device_eval_batch_size=8"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("warning: per_device_eval_batch_size: 8 is not used"));
  EXPECT_EQ(run({"plan", path("run.yaml"), "per_device_train_batch_size=2"}).err, "");
}

TEST_F(CliRefusal, RefusesBytesForAModelThatHasATokenizer) {
  write("model/tokenizer.json", "{}");
  const auto reason = AllOf(HasSubstr("train.tok is of bytes"), HasSubstr("model/tokenizer.json"),
                            HasSubstr("scripts/prepare.py --tokenizer " + path("model").string()),
                            HasSubstr("allow_other_tokenizer"));
  expect_refused({}, exit_usage, reason);
  const ProcessResult evaluated = run({"eval", path("run.yaml")});
  EXPECT_EQ(evaluated.exit_code, exit_usage);
  EXPECT_THAT(evaluated.err, HasSubstr("heldout.tok is of bytes"));
}

TEST_F(CliRefusal, WarnsOfAModelWithoutATokenizer) {
  EXPECT_THAT(run(train({"max_steps=1"})).err, HasSubstr("has no tokenizer.json"));
}

TEST_F(CliRefusal, FindsTooLittleRoomForTheExportBeforeTraining) {
  if (!can_mount()) GTEST_SKIP() << "no mount namespaces here";
  fs::create_directories(path("full"));
  std::vector<std::string> arguments =
      command(train({"export_dir=" + path("full/export").string()}));
  arguments.insert(arguments.begin(), path("full"));
  const ProcessResult result =
      run_with_mounts("mount -t tmpfs -o size=64k none \"$1\"\nshift\nexec \"$@\"", arguments);
  EXPECT_EQ(result.exit_code, exit_usage);
  EXPECT_THAT(result.err, AllOf(HasSubstr("for the export in " + path("full").string()),
                                HasSubstr("are free")));
  EXPECT_EQ(result.out.find("step 1/"), std::string::npos);
  expect_no_trace();
}

}  // namespace
}  // namespace strata
