#include "strata/comm/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "src/comm/process/slurm_nodes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Launch launch_of(const Variables& variables) {
  return read_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Launch launch_with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return launch_of(variables);
}

// The message of the ConfigError, or "no error".
std::string error_of(Variables variables, const Variables& changes = {}) {
  try {
    launch_with(std::move(variables), changes);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const Variables torchrun{{"RANK", "5"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "node7"},
                         {"MASTER_PORT", "29500"},
                         {"TORCHELASTIC_RUN_ID", "run"}};
const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "793706497"}};
const Variables slurm_step{{"SLURM_JOB_ID", "77"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "11"},
                           {"SLURM_PROCID", "9"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "2"},
                           {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"},
                           {"SLURM_STEP_NODELIST", "node[03-05,9],gpu1"}};

TEST(Launch, IsAloneWhenNothingIsSet) {
  const Launch launch = launch_of({});
  EXPECT_TRUE(launch.is_alone());
  EXPECT_EQ(launch.process, 0);
  EXPECT_EQ(launch.num_local_processes, 1);
  EXPECT_EQ(launch.address, "127.0.0.1");
  EXPECT_EQ(launch.port, 0);
  EXPECT_EQ(launch.source, "");
}

TEST(Launch, TakesAnEmptyVariableAsNone) {
  EXPECT_TRUE(launch_of({{"RANK", ""}, {"WORLD_SIZE", ""}, {"SLURM_STEP_ID", ""}}).is_alone());
}

TEST(Launch, ReadsTorchrun) {
  const Launch launch = launch_of(torchrun);
  EXPECT_EQ(launch.source, "torchrun");
  EXPECT_EQ(launch.process, 5);
  EXPECT_EQ(launch.num_processes, 8);
  EXPECT_EQ(launch.local_process, 1);
  EXPECT_EQ(launch.num_local_processes, 4);
  EXPECT_EQ(launch.address, "node7");
  EXPECT_EQ(launch.port, 29500);
  EXPECT_EQ(launch.job, "run");
}

TEST(Launch, LeavesMasterPortToTorchrunsOwnStore) {
  EXPECT_EQ(launch_with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}).port, 29501);
  EXPECT_EQ(launch_with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}).port, 29500);
  EXPECT_EQ(
      launch_with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"MASTER_PORT", "65535"}})
          .port,
      65534);
}

TEST(Launch, TakesAllProcessesForLocalWhereNothingElseIsTold) {
  const Launch bare = launch_of({{"RANK", "2"}, {"WORLD_SIZE", "3"}});
  EXPECT_EQ(bare.local_process, 2);
  EXPECT_EQ(bare.num_local_processes, 3);
  const Launch numbered = launch_of({{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"LOCAL_RANK", "0"}});
  EXPECT_EQ(numbered.local_process, 0);
  EXPECT_EQ(numbered.num_local_processes, 3);
}

TEST(Launch, NeedsNoLocalRankOfAProcessAloneOnItsHost) {
  const Launch launch = launch_of({{"RANK", "2"}, {"WORLD_SIZE", "3"}, {"LOCAL_WORLD_SIZE", "1"}});
  EXPECT_EQ(launch.local_process, 0);
  EXPECT_EQ(launch.num_local_processes, 1);
}

TEST(Launch, NeedsALocalRankAmongSomeOfTheProcesses) {
  EXPECT_THAT(error_of({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("LOCAL_WORLD_SIZE"), HasSubstr("LOCAL_RANK is not")));
}

TEST(Launch, ReadsOpenMpi) {
  const Launch launch = launch_with(open_mpi, {{"MASTER_PORT", "4000"}});
  EXPECT_EQ(launch.source, "Open MPI");
  EXPECT_EQ(launch.process, 3);
  EXPECT_EQ(launch.num_processes, 4);
  EXPECT_EQ(launch.local_process, 1);
  EXPECT_EQ(launch.num_local_processes, 2);
  EXPECT_EQ(launch.address, "127.0.0.1");
  EXPECT_EQ(launch.port, 4000);
  EXPECT_EQ(launch.job, "793706497");
}

TEST(Launch, ReadsAStepOfSlurm) {
  const Launch launch = launch_of(slurm_step);
  EXPECT_EQ(launch.source, "Slurm");
  EXPECT_EQ(launch.process, 9);
  EXPECT_EQ(launch.num_processes, 11);
  EXPECT_EQ(launch.local_process, 1);
  EXPECT_EQ(launch.num_local_processes, 3);
  EXPECT_EQ(launch.address, "node03");
  EXPECT_EQ(launch.port, 0);
  EXPECT_EQ(launch.job, "77.0");
}

TEST(Launch, PrefersTheAddressThatItIsTold) {
  EXPECT_EQ(launch_with(slurm_step, {{"MASTER_ADDR", "10.0.0.1"}}).address, "10.0.0.1");
}

TEST(Launch, PrefersTorchrunToOpenMpiToSlurm) {
  Variables all = torchrun;
  all.insert(open_mpi.begin(), open_mpi.end());
  all.insert(slurm_step.begin(), slurm_step.end());
  EXPECT_EQ(launch_of(all).source, "torchrun");
  Variables two = open_mpi;
  two.insert(slurm_step.begin(), slurm_step.end());
  EXPECT_EQ(launch_of(two).source, "Open MPI");
}

TEST(Launch, IsAloneInABatchScriptOfSlurm) {
  EXPECT_TRUE(
      launch_of({{"SLURM_JOB_ID", "77"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).is_alone());
  EXPECT_TRUE(launch_with(slurm_step, {{"SLURM_STEP_ID", "4294967291"}}).is_alone());
}

TEST(Launch, TakesTheFullestHostWhereSlurmDoesNotSayWhichThisIs) {
  EXPECT_EQ(launch_with(slurm_step, {{"SLURM_NODEID", ""}}).num_local_processes, 4);
}

TEST(Launch, RefusesARankWithoutAWorldSize) {
  EXPECT_THAT(error_of({{"RANK", "0"}}), AllOf(HasSubstr("RANK"), HasSubstr("WORLD_SIZE is not")));
  EXPECT_THAT(error_of({{"WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("WORLD_SIZE is"), HasSubstr("RANK")));
  EXPECT_THAT(error_of({{"OMPI_COMM_WORLD_RANK", "0"}}), HasSubstr("OMPI_COMM_WORLD_SIZE is not"));
  EXPECT_THAT(error_of(slurm_step, {{"SLURM_PROCID", ""}}), HasSubstr("SLURM_PROCID is not"));
  EXPECT_THAT(error_of(slurm_step, {{"SLURM_LOCALID", ""}}), HasSubstr("SLURM_LOCALID is not"));
}

TEST(Launch, RefusesNumbersThatContradictEachOther) {
  EXPECT_THAT(error_of(torchrun, {{"RANK", "8"}}),
              AllOf(HasSubstr("RANK=8"), HasSubstr("WORLD_SIZE=8")));
  EXPECT_THAT(error_of(torchrun, {{"LOCAL_RANK", "4"}}),
              AllOf(HasSubstr("LOCAL_RANK=4"), HasSubstr("LOCAL_WORLD_SIZE=4")));
  EXPECT_THAT(error_of(torchrun, {{"LOCAL_WORLD_SIZE", "9"}}),
              AllOf(HasSubstr("LOCAL_WORLD_SIZE=9"), HasSubstr("WORLD_SIZE=8")));
  EXPECT_THAT(error_of(torchrun, {{"WORLD_SIZE", "0"}, {"RANK", "0"}}), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(error_of(slurm_step, {{"SLURM_LOCALID", "3"}}),
              AllOf(HasSubstr("SLURM_LOCALID=3"), HasSubstr("SLURM_STEP_TASKS_PER_NODE=3")));
  EXPECT_THAT(error_of(slurm_step, {{"SLURM_NODEID", "3"}}),
              AllOf(HasSubstr("SLURM_NODEID is 3"), HasSubstr("SLURM_STEP_TASKS_PER_NODE")));
}

TEST(Launch, RefusesWhatIsNoNumber) {
  for (const char* value : {"x", "1x", "-1", "1.0", " 1", "99999999999999999999", "70000"}) {
    EXPECT_THAT(error_of(torchrun, {{"RANK", value}}), HasSubstr(std::string("RANK=") + value));
    EXPECT_THAT(error_of(torchrun, {{"MASTER_PORT", value}}),
                HasSubstr(std::string("MASTER_PORT=") + value));
  }
  EXPECT_THAT(error_of(open_mpi, {{"MASTER_PORT", "70000"}}), HasSubstr("65535"));
}

TEST(Launch, ReadsTheEnvironmentOfThisProcess) {
  ::setenv("RANK", "1", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  const Launch launch = read_launch();
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
  EXPECT_EQ(launch.process, 1);
  EXPECT_EQ(launch.num_processes, 2);
}

std::string first_host(std::string_view hosts) { return first_slurm_host("HOSTS", hosts); }

TEST(SlurmNodes, NameTheFirstHost) {
  EXPECT_EQ(first_host("node03"), "node03");
  EXPECT_EQ(first_host("node03,node04"), "node03");
  EXPECT_EQ(first_host("node[03-05,9],gpu1"), "node03");
  EXPECT_EQ(first_host("gpu1,node[03-05,9]"), "gpu1");
  EXPECT_EQ(first_host("node[7]"), "node7");
  EXPECT_EQ(first_host("node[7,9-12]"), "node7");
  EXPECT_EQ(first_host("rack[0-1]node[2-3]"), "rack0node2");
  EXPECT_EQ(first_host("node[001-100]-ib.cluster"), "node001-ib.cluster");
}

TEST(SlurmNodes, RefuseAListOfHostsThatIsNone) {
  for (const char* list : {"", ",node1", "node[", "node[]", "node[1", "node[-3]", "node[a-b]",
                           "node]1", "node[1-2]]"}) {
    EXPECT_THROW(first_host(list), ConfigError) << list;
  }
}

TEST(SlurmNodes, CountTheTasksOfAHost) {
  const auto tasks = [](int node) { return slurm_tasks_on_node("TASKS", "4(x2),3,1(x3)", node); };
  EXPECT_EQ(tasks(0), 4);
  EXPECT_EQ(tasks(1), 4);
  EXPECT_EQ(tasks(2), 3);
  EXPECT_EQ(tasks(5), 1);
  EXPECT_EQ(tasks(-1), 4);
  EXPECT_THROW(tasks(6), ConfigError);
}

TEST(SlurmNodes, RefuseTasksThatAreNone) {
  for (const char* tasks : {"", "x", "4(", "4(x", "4(x2", "4(x0)", "4(x-1)", "4,", ",4", "-4",
                            "4(x2)3", "4 3", "99999999999"}) {
    EXPECT_THROW(slurm_tasks_on_node("TASKS", tasks, 0), ConfigError) << tasks;
  }
}

TEST(SlurmNodes, AreBoundedWhateverIsClaimed) {
  EXPECT_EQ(slurm_tasks_on_node("TASKS", "1(x2000000000),2(x2000000000),3", 2000000000), 2);
}

}  // namespace
}  // namespace strata
