#pragma once
// One function per line of `strata doctor`, from facts to a finding. Pure.

#include "doctor_facts.hpp"

namespace strata {

// Adds a thing that is not well: the worse health stays, each advice is a line of its own.
void worsen(Finding& finding, Health health, const std::string& advice);

// What the kernel grants.
Finding find_kernel(const DoctorFacts& facts);
Finding find_io_uring(const DoctorFacts& facts);
Finding find_memlock(const DoctorFacts& facts);
Finding find_huge_pages(const DoctorFacts& facts);
Finding find_open_files(const DoctorFacts& facts);

// What there is to work with.
Finding find_memory(const DoctorFacts& facts);
Finding find_cores(const DoctorFacts& facts);
Finding find_threads(const DoctorFacts& facts);
Finding find_openmp(const DoctorFacts& facts);  // only when OMP_NUM_THREADS is set
Finding find_numa(const DoctorFacts& facts);
Finding find_gpus(const DoctorFacts& facts);
Finding find_cuda(const CudaInventory& cuda);  // only when this build has it

// Directories.
Finding find_drive(const DoctorFacts& facts, std::size_t index);
Finding find_output(const DirectoryFacts& output);

}  // namespace strata
