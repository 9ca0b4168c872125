# Finds LibTorch and makes imported targets for the few libraries that livepool links:
#   livepool_libtorch::cpu   c10, torch_cpu
#   livepool_libtorch::cuda  c10_cuda, torch_cuda and the CUDA runtime's headers (only if LIVEPOOL_HAVE_CUDA)
#   livepool_libtorch::python  torch_python and Python's headers (only if LIVEPOOL_HAVE_PYTHON)
# Torch's own TorchConfig.cmake is not used: it enables the CUDA language and looks for a GPU, which fails
# with CMake 3.25 and CUDA 13 on machines without one.
#
# Where torch is: LIVEPOOL_TORCH_DIR (a LibTorch folder with include/ and lib/), or else the torch package of
# the interpreter LIVEPOOL_PYTHON (default: python3).
set(LIVEPOOL_TORCH_DIR "" CACHE PATH "LibTorch folder; empty: ask LIVEPOOL_PYTHON")
set(default_python python3)
if(Python_EXECUTABLE)
  set(default_python "${Python_EXECUTABLE}")  # what builders of wheels pass
endif()
set(LIVEPOOL_PYTHON "${default_python}" CACHE STRING "Interpreter whose torch is used and for which the module is built")

execute_process(
  COMMAND ${LIVEPOOL_PYTHON} -c "import sysconfig; print(sysconfig.get_path('include')); print(sysconfig.get_config_var('EXT_SUFFIX')); import importlib.util, os; s = importlib.util.find_spec('torch'); print(os.path.dirname(s.origin) if s else '')"
  OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(NOT failed)
  string(REPLACE "\n" ";" answer "${answer}")
  list(GET answer 0 LIVEPOOL_PYTHON_INCLUDE)
  list(GET answer 1 LIVEPOOL_PYTHON_SUFFIX)
  list(LENGTH answer lines)
  if(lines GREATER 2)
    list(GET answer 2 torch_of_python)
  endif()
endif()
set(torch_dir "${LIVEPOOL_TORCH_DIR}")
if(NOT torch_dir)
  set(torch_dir "${torch_of_python}")
endif()
if(NOT EXISTS "${torch_dir}/include/c10/core/Allocator.h")
  message(FATAL_ERROR "livepool: no torch found by ${LIVEPOOL_PYTHON}; set LIVEPOOL_PYTHON or LIVEPOOL_TORCH_DIR, "
                      "or build the core alone with -DLIVEPOOL_WITH_TORCH=OFF")
endif()
file(STRINGS "${torch_dir}/include/torch/headeronly/version.h" version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" version_lines "${version_lines}")
string(REPLACE ";" "." LIVEPOOL_TORCH_VERSION "${version_lines}")
if(NOT LIVEPOOL_TORCH_VERSION VERSION_GREATER_EQUAL 2.11 OR NOT LIVEPOOL_TORCH_VERSION VERSION_LESS 2.12)
  message(FATAL_ERROR "livepool: torch ${LIVEPOOL_TORCH_VERSION} in ${torch_dir} is not supported; this release needs 2.11")
endif()

function(livepool_import name)
  add_library(livepool_libtorch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(livepool_libtorch::${name} PROPERTIES
    IMPORTED_LOCATION "${torch_dir}/lib/lib${name}.so"
    IMPORTED_NO_SONAME OFF)
endfunction()

livepool_import(c10)
livepool_import(torch_cpu)
add_library(livepool_libtorch::cpu INTERFACE IMPORTED GLOBAL)
target_include_directories(livepool_libtorch::cpu SYSTEM INTERFACE
  "${torch_dir}/include" "${torch_dir}/include/torch/csrc/api/include")
# Libraries of torch that are needed by those we link are found beside them.
target_link_libraries(livepool_libtorch::cpu INTERFACE livepool_libtorch::torch_cpu livepool_libtorch::c10)
target_link_options(livepool_libtorch::cpu INTERFACE "LINKER:--allow-shlib-undefined")

set(LIVEPOOL_HAVE_CUDA OFF)
set(LIVEPOOL_WHEEL_CUDA_INCLUDE "${torch_dir}/../nvidia/cu13/include")
find_path(LIVEPOOL_CUDA_INCLUDE cuda_runtime_api.h
  HINTS "$ENV{CUDA_HOME}/include" /usr/local/cuda/include "${LIVEPOOL_WHEEL_CUDA_INCLUDE}")
# The runtime that torch itself loads comes first; inline functions of torch's headers call it.
find_library(LIVEPOOL_CUDART NAMES libcudart.so.13 cudart
  HINTS "${torch_dir}/../nvidia/cu13/lib" "$ENV{CUDA_HOME}/lib64" /usr/local/cuda/lib64)
if(NOT LIVEPOOL_WITH_CUDA STREQUAL "OFF" AND EXISTS "${torch_dir}/lib/libc10_cuda.so" AND LIVEPOOL_CUDA_INCLUDE
   AND LIVEPOOL_CUDART)
  set(LIVEPOOL_HAVE_CUDA ON)
  livepool_import(c10_cuda)
  livepool_import(torch_cuda)
  add_library(livepool_libtorch::cuda INTERFACE IMPORTED GLOBAL)
  target_include_directories(livepool_libtorch::cuda SYSTEM INTERFACE "${LIVEPOOL_CUDA_INCLUDE}")
  target_link_libraries(livepool_libtorch::cuda INTERFACE livepool_libtorch::cpu 
    livepool_libtorch::torch_cuda livepool_libtorch::c10_cuda ${LIVEPOOL_CUDART})
elseif(LIVEPOOL_WITH_CUDA STREQUAL "ON")
  message(FATAL_ERROR "livepool: LIVEPOOL_WITH_CUDA=ON needs a torch with CUDA, cuda_runtime_api.h and libcudart (CUDA toolkit)")
endif()

set(LIVEPOOL_TORCH_LIBRARY_DIRS "${torch_dir}/lib")
if(LIVEPOOL_HAVE_CUDA)
  get_filename_component(cudart_dir "${LIVEPOOL_CUDART}" DIRECTORY)
  list(APPEND LIVEPOOL_TORCH_LIBRARY_DIRS "${cudart_dir}")
endif()

set(LIVEPOOL_HAVE_PYTHON OFF)
if(EXISTS "${torch_dir}/lib/libtorch_python.so" AND EXISTS "${LIVEPOOL_PYTHON_INCLUDE}/Python.h")
  set(LIVEPOOL_HAVE_PYTHON ON)
  livepool_import(torch_python)
  add_library(livepool_libtorch::python INTERFACE IMPORTED GLOBAL)
  target_include_directories(livepool_libtorch::python SYSTEM INTERFACE "${LIVEPOOL_PYTHON_INCLUDE}")
  target_link_libraries(livepool_libtorch::python INTERFACE livepool_libtorch::cpu livepool_libtorch::torch_python)
endif()
message(STATUS "livepool: torch ${LIVEPOOL_TORCH_VERSION} in ${torch_dir}, CUDA ${LIVEPOOL_HAVE_CUDA}, Python ${LIVEPOOL_HAVE_PYTHON}")
