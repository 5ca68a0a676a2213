# Warnings, numbers and sanitizers for every target of ours.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3")
find_program(STRATA_CCACHE ccache)
if(STRATA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STRATA_CCACHE})
endif()

add_library(strata_options INTERFACE)
target_include_directories(strata_options INTERFACE ${PROJECT_SOURCE_DIR}/include)
# No contraction and no fast-math: bits are a contract (docs/design/numbers.md).
set(STRATA_CXX_OPTIONS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror
                       -ffp-contract=off -fno-fast-math -g1)
# nvcc's own code for the host is not pedantic. No contraction there either: who wants an fma writes one.
set(STRATA_CUDA_OPTIONS -Werror=all-warnings --fmad=false --expt-relaxed-constexpr -lineinfo
                        -Xcompiler=-Wall,-Wextra,-Wshadow,-Werror,-ffp-contract=off,-g1)
target_compile_options(strata_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${STRATA_CXX_OPTIONS}>
                                               $<$<COMPILE_LANGUAGE:CUDA>:${STRATA_CUDA_OPTIONS}>)
if(STRATA_SANITIZE)
  target_compile_options(strata_options INTERFACE -fsanitize=${STRATA_SANITIZE} -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all)
  target_link_options(strata_options INTERFACE -fsanitize=${STRATA_SANITIZE})
endif()
