# Under the sanitizers, sources are built some at a time, on top of what most of them include, parsed once: that takes a
# third of the time. Elsewhere each is parsed on its own, which shows what it forgets to include.
if(STRATA_SANITIZE AND NOT STRATA_FUZZ)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers.cpp CONTENT "")
  add_library(strata_headers STATIC ${CMAKE_BINARY_DIR}/headers.cpp)
  target_link_libraries(strata_headers PRIVATE strata_options fmt::fmt)
  target_compile_options(strata_headers PRIVATE -fpch-preprocess)  # for ccache
  target_precompile_headers(strata_headers PRIVATE <fmt/format.h> <algorithm> <array> <atomic> <chrono> <cmath>
    <condition_variable> <cstdint> <cstring> <deque> <filesystem> <functional> <limits> <map> <memory> <mutex> <numeric>
    <optional> <set> <span> <string> <thread> <utility> <variant> <vector>)
endif()

# strata_build_at_once(target): what is said above. Highway includes a source once for each SIMD target.
function(strata_build_at_once target)
  if(NOT STRATA_SANITIZE)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} includes_itself REGEX "hwy/foreach_target.h" LIMIT_COUNT 1)
    if(includes_itself)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# strata_module(name SOURCES dirs... DEPS libs... [WITHOUT patterns...] [OWN_FLAGS]): library strata::name from every
# .cpp below the directories, and every .cu where there is CUDA, but those whose path matches a pattern. OWN_FLAGS: for
# the compiler, such as do not go with common headers.
function(strata_module name)
  cmake_parse_arguments(MODULE "OWN_FLAGS" "" "SOURCES;DEPS;WITHOUT" ${ARGN})
  set(sources)
  foreach(directory IN LISTS MODULE_SOURCES)
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${directory}/*.cpp)
    list(APPEND sources ${found})
    if(STRATA_HAS_CUDA)
      file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${directory}/*.cu)
      list(APPEND sources ${found})
    endif()
  endforeach()
  foreach(pattern IN LISTS MODULE_WITHOUT)
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  if(sources)
    add_library(strata_${name} STATIC ${sources})
    target_link_libraries(strata_${name} PUBLIC strata_options ${MODULE_DEPS})
    target_include_directories(strata_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
    strata_build_at_once(strata_${name})
    if(TARGET strata_headers AND NOT MODULE_OWN_FLAGS)
      target_precompile_headers(strata_${name} REUSE_FROM strata_headers)
    endif()
  else()
    add_library(strata_${name} INTERFACE)
    target_link_libraries(strata_${name} INTERFACE strata_options ${MODULE_DEPS})
  endif()
  add_library(strata::${name} ALIAS strata_${name})
endfunction()
