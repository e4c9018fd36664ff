# SPDX-License-Identifier: BSD-2-Clause

# vabi_test(NAME source… [LIBS target…]): a GoogleTest program whose cases ctest lists one by one.
# The tests run in the source root, so that they find matrix/ and reference-headers/. A room sets VABI_TEST_LIBS to
# what all its tests are linked with.
function(vabi_test name)
  cmake_parse_arguments(arg "" "" "LIBS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} ${VABI_TEST_LIBS} GTest::gmock GTest::gtest_main)
  # Optimizing took a third of the time of compiling, for code that runs once; what is tested keeps its own options.
  target_compile_options(${name} PRIVATE -O0)
  # Programs with a sanitizer may be unable to begin on this machine: building them must not need that.
  if(VABI_SANITIZE)
    set(listed PRE_TEST)
  else()
    set(listed POST_BUILD)
  endif()
  # A parameter printed as bytes holds addresses: the name of a test would change with every build.
  gtest_discover_tests(${name} NO_PRETTY_VALUES WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_TIMEOUT 60
                       DISCOVERY_MODE ${listed} PROPERTIES TIMEOUT 120)
endfunction()

# Rooms may still be empty while the project grows: add_subdirectory only what is there.
function(vabi_add_room dir)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/CMakeLists.txt)
    add_subdirectory(${dir})
  endif()
endfunction()
