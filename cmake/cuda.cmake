# CUDA where there is a toolkit that knows our newest architecture, from CUDA_PATH, CUDACXX, PATH or /usr/local/cuda.
# Without one, with -DSTRATA_CUDA=OFF and under sanitizers the build has src/device/cuda_absent.cpp and
# kernels/cuda_absent instead. The runtime is linked statically and finds the driver when it is first used, so the
# program starts where there is none.
set(STRATA_HAS_CUDA OFF)
set(STRATA_NCCL_UNUSED "/src/comm/nccl/runtime/")
set(STRATA_CUDA_UNUSED "/src/device/cuda/runtime/")
set(STRATA_CUDA_RUNTIME)
set(STRATA_CUDA_KERNELS kernels/cuda_absent)
set(STRATA_CUDA_LIBRARIES)
if(NOT STRATA_CUDA OR STRATA_FUZZ OR STRATA_SANITIZE)
  return()
endif()

find_package(CUDAToolkit 12.8 QUIET)
if(NOT CUDAToolkit_FOUND)
  message(STATUS "without CUDA: no toolkit of 12.8 or newer was found")
  return()
endif()
set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE} CACHE FILEPATH "nvcc")
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "The compiler that nvcc calls")
# Code for each, and PTX of the newest for what comes after it.
set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100-real 120 CACHE STRING "GPU architectures to build for")
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
if(STRATA_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${STRATA_CCACHE})
endif()
enable_language(CUDA)
# CMake 3.25 does not know that nvcc of this age has C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
message(STATUS "CUDA ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")

set(STRATA_HAS_CUDA ON)
set(STRATA_CUDA_UNUSED "/src/device/cuda_absent\\.cpp$")
set(STRATA_CUDA_RUNTIME CUDA::cudart_static)
# The toolkit's headers are not ours: their warnings are no errors.
get_target_property(STRATA_CUDA_INCLUDES CUDA::cudart_static INTERFACE_INCLUDE_DIRECTORIES)
set_target_properties(CUDA::cudart_static PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${STRATA_CUDA_INCLUDES}")
file(GLOB_RECURSE STRATA_CUDA_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu)
if(STRATA_CUDA_SOURCES)
  set(STRATA_CUDA_KERNELS kernels/cuda)
  # cuBLASLt is loaded when it is needed (kernels/cuda/blas_library.hpp): the program starts without it.
  set(STRATA_CUDA_LIBRARIES CUDA::cudart_static)
endif()

# NCCL's header suffices: the library is loaded when it is first used.
find_path(STRATA_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(STRATA_NCCL_INCLUDE)
  set(STRATA_NCCL_UNUSED "/src/comm/nccl_absent\\.cpp$")
else()
  message(STATUS "without NCCL: there is no nccl.h, so several GPUs cannot train together")
endif()
