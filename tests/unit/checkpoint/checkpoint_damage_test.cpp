// A small checkpoint is damaged in every byte of every file, once each: always found, and named.

#include "support/sanitizers.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string path = "/out/checkpoint-1";

std::vector<StateVector> small_vectors() {
  return {{Role::master, "a", DType::f32, 100},
          {Role::weight, "a", DType::bf16, norm_chunk_elements + 3},
          {Role::moment1, "a", DType::q8, norm_chunk_elements + 5}};
}

class CheckpointDamage : public ::testing::Test {
 public:
  CheckpointDamage() {
    save(*engine_, "/out", 1, small_vectors(), 1, {.tile_elements = norm_chunk_elements});
  }

 protected:
  FileSystem& files() { return engine_->file_system(); }
  std::vector<std::byte> contents(const std::string& name) {
    return files().read_file(path + "/" + name, 1 * MiB);
  }
  void put(const std::string& name, const std::vector<std::byte>& bytes) {
    files().write_file(path + "/" + name, bytes);
  }
  // All that open() and verify() say.
  std::vector<std::string> problems() {
    try {
      return CheckpointReader::open(*engine_, path)->verify();
    } catch (const FormatError& error) {
      return {error.what()};
    }
  }
  std::string only_problem() {
    const auto all = problems();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? "" : all[0];
  }

  const std::unique_ptr<SimEngine> engine_ = make_sim_engine({});
};

TEST_F(CheckpointDamage, OfAnyByteOfAVectorsFileIsFoundWithFileAndVector) {
  for (std::size_t i = 0; i < small_vectors().size(); ++i) {
    const StateVector vector = small_vectors()[i];
    const std::string name = "0000" + std::to_string(i) + "-" + std::string(role_name(vector.role));
    auto bytes = contents(name + ".bin");
    const auto stride = static_cast<std::size_t>(rounds(13, 97));
    for (std::size_t at = i; at < bytes.size(); at += stride) {
      bytes[at] ^= std::byte{1} << (at % 8);
      put(name + ".bin", bytes);
      ASSERT_THAT(only_problem(), AllOf(HasSubstr(path + "/" + name + ".bin"),
                                        HasSubstr(state_vector_name(vector))))
          << "byte " << at;
      bytes[at] ^= std::byte{1} << (at % 8);
    }
    put(name + ".bin", bytes);
  }
  EXPECT_THAT(problems(), IsEmpty()) << "whole again";
}

TEST_F(CheckpointDamage, OfAnyByteOfTheManifestIsFound) {
  auto bytes = contents("checkpoint.json");
  for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(rounds(1, 13))) {
    bytes[at] ^= std::byte{1} << (at % 8);
    put("checkpoint.json", bytes);
    ASSERT_THAT(error_of<FormatError>([&] { CheckpointReader::open(*engine_, path); }),
                HasSubstr(path + "/checkpoint.json"))
        << "byte " << at;
    bytes[at] ^= std::byte{1} << (at % 8);
  }
}

TEST_F(CheckpointDamage, StopsAReadOfTheElementsAndNoOther) {
  auto bytes = contents("00001-weight.bin");
  bytes[norm_chunk_elements * 2 + 1] ^= std::byte{1};
  put("00001-weight.bin", bytes);
  const auto reader = CheckpointReader::open(*engine_, path);
  std::vector<std::byte> target(norm_chunk_elements * 2 + 6);
  EXPECT_THAT(error_of<FormatError>([&] { reader->read(1, 0, norm_chunk_elements + 3, target); }),
              AllOf(HasSubstr("elements [4096, 4099) of vector \"weight/a\""),
                    HasSubstr("00001-weight.bin"), HasSubstr("are damaged")));
  reader->read(1, 0, norm_chunk_elements, target);
  const auto expected = vector_contents(small_vectors()[1], 1);
  EXPECT_TRUE(std::equal(target.begin(), target.end() - 6, expected.begin()));
}

TEST_F(CheckpointDamage, OfTheLengthOfAnyFileIsFound) {
  for (const std::string& name : files().list(path)) {
    const auto bytes = contents(name);
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, bytes.size() - 4096,
                                     bytes.size() - 1, bytes.size() + 1, bytes.size() + 4096}) {
      auto other = bytes;
      other.resize(length);
      put(name, other);
      ASSERT_THAT(error_of<FormatError>([&] { CheckpointReader::open(*engine_, path); }),
                  HasSubstr(path + "/" + name))
          << length;
    }
    put(name, bytes);
  }
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(CheckpointDamage, NamesVectorAndBytesOfAFileOfAnotherLength) {
  put("00001-weight.bin", std::vector<std::byte>(4096));
  EXPECT_THAT(only_problem(), HasSubstr("00001-weight.bin: it has 4096 bytes; with vector "
                                        "\"weight/a\" it should have 12288"));
}

TEST_F(CheckpointDamage, NamesAFileThatIsMissing) {
  for (const std::string& name : files().list(path)) {
    const auto bytes = contents(name);
    files().remove(path + "/" + name);
    EXPECT_THAT(only_problem(), AllOf(HasSubstr(name), HasSubstr("missing")));
    put(name, bytes);
  }
}

TEST_F(CheckpointDamage, NamesAFileTooMuch) {
  put("notes\n.txt", {});
  EXPECT_THAT(only_problem(), HasSubstr("it holds \"notes\\n.txt\""));
}

TEST_F(CheckpointDamage, OfZerosWhereAFileWasLostIsFound) {
  put("00000-master.bin", std::vector<std::byte>(4096));
  EXPECT_THAT(only_problem(), HasSubstr("vector \"master/a\""));
}

TEST_F(CheckpointDamage, ByMixingTheFilesOfTwoCheckpointsIsFound) {
  save(*engine_, "/out", 2, small_vectors(), 2, {.tile_elements = norm_chunk_elements});
  for (const std::string& name : files().list(path)) {
    const auto bytes = contents(name);
    put(name, files().read_file("/out/checkpoint-2/" + name, 1 * MiB));
    EXPECT_THAT(problems(), Contains(HasSubstr(name)));
    put(name, bytes);
  }
}

TEST_F(CheckpointDamage, ByAnotherStepsManifestBesideTheSameBytesIsFound) {
  save(*engine_, "/out", 2, small_vectors(), 1, {.tile_elements = norm_chunk_elements});
  put("checkpoint.json", files().read_file("/out/checkpoint-2/checkpoint.json", 1 * MiB));
  EXPECT_THAT(only_problem(), HasSubstr("its checkpoint.json is that of step 2"));
}

TEST_F(CheckpointDamage, ThatTheDriveReportsIsToldWithItsReason) {
  const auto engine = make_sim_engine({.faults = {{.at_operation = 20, .error_number = EIO}}});
  save(*engine, "/out", 1, small_vectors(), 1);
  const auto reader = CheckpointReader::open(*engine, path);
  std::vector<std::string> all;
  while (all.empty()) all = reader->verify();
  EXPECT_THAT(all[0], AllOf(HasSubstr("cannot be read"), HasSubstr("errno 5")));
}

TEST(CheckpointReaderOpen, SaysWhatIsNoCheckpoint) {
  const auto engine = make_sim_engine({});
  FileSystem& files = engine->file_system();
  const auto refusal = [&](const std::string& folder) {
    return error_of<FormatError>([&] { CheckpointReader::open(*engine, folder); });
  };
  EXPECT_THAT(refusal("/out/checkpoint-1"), HasSubstr("there is no such folder"));
  files.make_directory("/out/checkpoint-1");
  EXPECT_THAT(refusal("/out/checkpoint-1"), HasSubstr("it is no checkpoint of Strata"));
  EXPECT_THAT(refusal("/out/checkpoint-1.partial"), HasSubstr("a run that ended early"));
}

TEST(CheckpointReaderOpen, TakesACopyOfAnyName) {
  const auto engine = make_sim_engine({});
  save(*engine, "/out", 1, small_vectors(), 1);
  engine->file_system().rename("/out/checkpoint-1", "/out/best");
  EXPECT_TRUE(is_good(*engine, "/out/best", 1));
  EXPECT_TRUE(is_good(*engine, "/out/best/", 1));
}

}  // namespace
}  // namespace strata::testing
