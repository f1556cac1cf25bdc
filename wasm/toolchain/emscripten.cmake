# CMake toolchain file: Emscripten as found by find.sh.
execute_process(
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/find.sh
  OUTPUT_VARIABLE emscripten OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT emscripten)
  message(FATAL_ERROR "Emscripten 4.0 or newer is missing: run `npm run setup`.")
endif()

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(EMSCRIPTEN TRUE)
set(CMAKE_C_COMPILER ${emscripten}/emcc)
set(CMAKE_CXX_COMPILER ${emscripten}/em++)
set(CMAKE_AR ${emscripten}/emar CACHE FILEPATH "")
set(CMAKE_RANLIB ${emscripten}/emranlib CACHE FILEPATH "")

# Linking takes seconds, and CMake's own checks of the compiler have no need of it.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Nothing of the host is to be found but programs.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The compiler is a script that stays the same when the compiler behind it changes. ccache is told
# the version, and since it is part of every command, Ninja compiles everything for a new one.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} --version OUTPUT_VARIABLE version ERROR_QUIET)
string(MD5 version "${version}")
set(KVLENS_COMPILER_ENVIRONMENT CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK=string:${version}
    # The compiler is run once, and what its dependency file names is compared.
    CCACHE_DEPEND=true CCACHE_SLOPPINESS=pch_defines,time_macros)

# Where clang-tidy (tools/tidy.mjs), which runs outside the tree, finds the system headers.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} --cflags OUTPUT_VARIABLE cflags ERROR_QUIET)
if(cflags MATCHES "--sysroot=([^ \n]+)")
  set(sysroot ${CMAKE_MATCH_1})
  if(emscripten STREQUAL "${CMAKE_CURRENT_LIST_DIR}/bin")
    execute_process(
      COMMAND sh -c ". ${CMAKE_CURRENT_LIST_DIR}/common.sh && echo $kvlens_root"
      OUTPUT_VARIABLE tree OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(PREPEND sysroot ${tree})
  endif()
  set(KVLENS_SYSROOT ${sysroot} CACHE INTERNAL "Emscripten's system headers, for clang-tidy")
endif()

# Node 20 has relaxed SIMD behind a flag, but its baseline compiler computes wrong dot products. The
# private Emscripten comes with a newer Node; with another one, tests of relaxed SIMD are left out.
set(CMAKE_CROSSCOMPILING_EMULATOR node)
set(KVLENS_RUNS_RELAXED_SIMD ON)
execute_process(COMMAND node --version OUTPUT_VARIABLE node OUTPUT_STRIP_TRAILING_WHITESPACE)
if(node MATCHES "^v(1[0-9]|2[01])\\.")
  if(EXISTS ${emscripten}/node)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${emscripten}/node)
  else()
    set(KVLENS_RUNS_RELAXED_SIMD OFF)
  endif()
endif()
