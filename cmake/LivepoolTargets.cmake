# Functions that every CMakeLists.txt of the project uses.

# Compiler settings of our own code: warnings are errors.
# NDEBUG is defined in every configuration, because torch's headers change layout without it
# (RecordFunction has one member more); own checks are therefore never assert().
function(livepool_own_code target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    -Wno-missing-field-initializers -Werror)
  # GCC 12 sees overlap in string concatenation where there is none (gcc.gnu.org, PR 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  target_compile_definitions(${target} PRIVATE NDEBUG)
  # Some toolchains link the C++ runtime statically. Were its symbols visible, those of torch's own copy and ours would
  # get mixed at run time (a stream that formats a number crashes then).
  get_target_property(type ${target} TYPE)
  if(type MATCHES "^(SHARED|MODULE)_LIBRARY$")
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,libstdc++.a:libgcc.a:libgcc_eh.a)
  endif()
  if(LIVEPOOL_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LIVEPOOL_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${LIVEPOOL_SANITIZE})
  endif()
endfunction()

# Adds the current folder as a layer of `target`: its sources, and its include/ folder for users.
function(livepool_layer target)
  target_sources(${target} PRIVATE ${ARGN})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endfunction()

# One GoogleTest program; each of its cases is a ctest case.
#   livepool_test(NAME plan_test SOURCES a_test.cc b_test.cc LIBS livepool::core [LABELS gpu])
function(livepool_test)
  cmake_parse_arguments(T "" "NAME" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${T_NAME} ${T_SOURCES})
  livepool_own_code(${T_NAME})
  target_include_directories(${T_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${T_NAME} PRIVATE ${T_LIBS} GTest::gmock GTest::gtest_main)
  set(properties TIMEOUT 300)
  foreach(property LABELS ENVIRONMENT)
    if(T_${property})
      list(APPEND properties ${property} "${T_${property}}")
    endif()
  endforeach()
  if("gpu" IN_LIST T_LABELS)
    list(APPEND properties RUN_SERIAL TRUE)  # they measure and fill the memory of the one device
  endif()
  gtest_discover_tests(${T_NAME} DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endfunction()
include(GoogleTest)
