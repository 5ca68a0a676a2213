#include "strata/measure/doctor.hpp"

#include <algorithm>

#include "measure/doctor_facts.hpp"
#include "measure/doctor_findings.hpp"

namespace strata {

void worsen(Finding& finding, Health health, const std::string& advice) {
  finding.health = std::max(finding.health, health);
  if (!finding.advice.empty()) finding.advice += '\n';
  finding.advice += advice;
}

std::vector<Finding> diagnose(const DoctorFacts& facts) {
  std::vector<Finding> findings = {
      find_kernel(facts),     find_io_uring(facts), find_memlock(facts), find_huge_pages(facts),
      find_open_files(facts), find_memory(facts),   find_cores(facts),   find_threads(facts)};
  if (facts.omp_num_threads) findings.push_back(find_openmp(facts));
  findings.push_back(find_numa(facts));
  findings.push_back(find_gpus(facts));
  if (facts.cuda.is_built) findings.push_back(find_cuda(facts.cuda));
  for (std::size_t i = 0; i < facts.drives.size(); ++i) findings.push_back(find_drive(facts, i));
  if (facts.output) findings.push_back(find_output(*facts.output));
  return findings;
}

std::vector<Finding> examine(const DoctorOptions& options) {
  return diagnose(gather_facts(options));
}

Health overall_health(const std::vector<Finding>& findings) {
  Health worst = Health::ok;
  for (const Finding& finding : findings) worst = std::max(worst, finding.health);
  return worst;
}

}  // namespace strata
