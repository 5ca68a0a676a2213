# All from the distribution; scripts/install-dependencies installs them. OpenMP's run-time comes with g++.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(uring REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
if(STRATA_FUZZ)
  return()
endif()
find_package(Boost 1.74 REQUIRED)  # Asio, from its headers alone: src/comm/process.
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
find_package(dnnl REQUIRED)
find_package(OpenMP REQUIRED)  # oneDNN runs on it; kernels/cpu keeps it to one thread.
find_package(CLI11 REQUIRED)
find_package(yaml-cpp REQUIRED)
