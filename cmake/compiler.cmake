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
set(STRATA_CXX_OPTIONS -ffp-contract=off -fno-fast-math -g1)
if(NOT STRATA_SANITIZE)  # instrumented code gives warnings of its own
  list(APPEND STRATA_CXX_OPTIONS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
endif()
# nvcc's own code for the host is not pedantic. No contraction there either: who wants an fma writes one.
set(STRATA_CUDA_OPTIONS -Werror=all-warnings --fmad=false --expt-relaxed-constexpr -lineinfo
                        -Xcompiler=-Wall,-Wextra,-Wshadow,-Werror,-ffp-contract=off,-g1)
target_compile_options(strata_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${STRATA_CXX_OPTIONS}>
                                               $<$<COMPILE_LANGUAGE:CUDA>:${STRATA_CUDA_OPTIONS}>)
if(STRATA_SANITIZE)
  target_compile_options(strata_options INTERFACE -fsanitize=${STRATA_SANITIZE} -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all)
  target_link_options(strata_options INTERFACE -fsanitize=${STRATA_SANITIZE})
  target_link_options(strata_options INTERFACE -no-pie)  # a test starts in half the time
  # All widths of vectors take the same ways through the kernels. The release build tests each.
  target_compile_definitions(strata_options INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3)")
  if(STRATA_SANITIZE MATCHES "undefined")  # half of the compiler's time; ASan tells of null pointers too
    target_compile_options(strata_options INTERFACE -fno-sanitize=null)
  endif()
endif()

# strata_seldom_run(target headers...): what takes the compiler longer than it ever runs. The headers are parsed once.
function(strata_seldom_run target)
  if(STRATA_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE -O1 -fpch-preprocess)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
