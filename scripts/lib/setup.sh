# Sourced by the scripts beside this folder: makes sure that everything is there, and builds.
#
#   livepool_setup      tools and libraries, an interpreter (sets PYTHON), the build in build/release
#   livepool_has_gpu    whether this machine shows an NVIDIA device
#
# PYTHON is python3 where that has a supported torch, torchvision and transformers, else .venv/bin/python.
# LIVEPOOL_PYTHON=/path/to/python in the environment chooses another.
# What was found is kept in build/setup.stamp, so that the next call checks next to nothing.

ROOT="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)"
BUILD="$ROOT/build/release"
STAMP="$ROOT/build/setup.stamp"
EXTRA_PACKAGES="$ROOT/build/python-packages" # rich and pytest, where python3 lacks only these
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'livepool: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

livepool_has_gpu() {
  compgen -G '/dev/nvidia[0-9]*' >/dev/null || nvidia-smi -L 2>/dev/null | grep -q '^GPU '
}

# ---- System packages --------------------------------------------------------------------------------------------

has_command() { command -v "$1" >/dev/null 2>&1; }

# Asks the compiler, which knows every folder it searches; then the prefixes that CMake would search.
has_header() {
  local prefix
  if printf '#include <%s>\n' "$1" | "${CXX:-c++}" -std=c++20 -E -x c++ - >/dev/null 2>&1; then return 0; fi
  for prefix in ${CMAKE_PREFIX_PATH:+${CMAKE_PREFIX_PATH//[:;]/ }} /usr /usr/local /opt/*; do
    if [[ -e "$prefix/include/$1" ]]; then return 0; fi
  done
  return 1
}

has_cmake_3_25() {
  local version
  version="$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')"
  [[ -n "$version" && "$(printf '%s\n3.25\n' "$version" | sort -V | head -n 1)" == 3.25 ]]
}

# The Debian packages whose content is not found, one a line.
missing_packages() {
  has_command "${CXX:-c++}" || echo g++
  has_cmake_3_25 || echo cmake
  has_command ninja || echo ninja-build
  has_command python3 || echo python3
  has_header gtest/gtest.h || echo libgtest-dev
  has_header gmock/gmock.h || echo libgmock-dev
  has_header benchmark/benchmark.h || echo libbenchmark-dev
  has_header CLI/CLI.hpp || echo libcli11-dev
  has_header nlohmann/json.hpp || echo nlohmann-json3-dev
}

# Installs Debian packages where this user may. Where that fails it only warns: CMake has the last word.
apt_install() {
  local sudo=()
  if ! has_command apt-get; then
    say "warning: not found, and there is no apt-get to install them: $*"
    return 0
  fi
  if [[ "$(id -u)" != 0 ]]; then
    if ! sudo -n true 2>/dev/null; then
      say "warning: not found: $*. Install them with: sudo apt-get install $*"
      return 0
    fi
    sudo=(sudo -n)
  fi
  say "installs system packages: $*"
  local options=(-o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20)
  "${sudo[@]}" apt-get "${options[@]}" update -qq >&2 || say "warning: the package lists could not be refreshed"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y --no-install-recommends "$@" >&2 ||
    say "warning: these could not be installed: $*"
}

ensure_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]})); then apt_install "${missing[@]}"; fi
  has_command "${CXX:-c++}" || die "no C++ compiler: install g++ 12 or newer"
  has_cmake_3_25 || die "no CMake 3.25 or newer"
  has_command ninja || die "no ninja"
}

# ---- Python -----------------------------------------------------------------------------------------------------

# What the interpreter $1 lacks; with --import as $2, torch is really imported.
python_lacks() { PYTHONPATH="$EXTRA_PACKAGES${PYTHONPATH:+:$PYTHONPATH}" "$1" "$ROOT/scripts/lib/check_python.py" "${@:2}"; }

# Whether the interpreter $1 will do, with rich and pytest put beside it if it lacks only these.
python_will_do() {
  local lacks
  lacks="$(python_lacks "$1" --import)" || return 1
  if [[ -z "$lacks" ]]; then return 0; fi
  if grep -qvE '^(rich|pytest)$' <<<"$lacks"; then return 1; fi
  say "$1 has torch, but lacks ${lacks//$'\n'/ and }: installs into build/python-packages"
  # shellcheck disable=SC2086  # one word a package
  "$1" -m pip install --quiet --target "$EXTRA_PACKAGES" $lacks >&2 ||
    die "could not install: run $1 -m pip install ${lacks//$'\n'/ }"
}

make_venv() {
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then apt_install python3-venv; fi
  if [[ ! -x "$ROOT/.venv/bin/python" ]]; then
    say "makes .venv"
    python3 -m venv "$ROOT/.venv" || die "python3 cannot make a virtual environment"
  fi
  say "installs torch and the other pinned packages into .venv (a few gigabytes the first time)"
  "$ROOT/.venv/bin/python" -m pip install -r "$ROOT/scripts/requirements.txt" >&2 ||
    die "pip could not install scripts/requirements.txt into .venv"
}

# Sets PYTHON.
find_python() {
  if [[ -n "${LIVEPOOL_PYTHON:-}" ]]; then
    python_will_do "$LIVEPOOL_PYTHON" ||
      die "LIVEPOOL_PYTHON=$LIVEPOOL_PYTHON lacks: $(python_lacks "$LIVEPOOL_PYTHON" --import | paste -sd' ')"
    PYTHON="$("$LIVEPOOL_PYTHON" -c 'import sys; print(sys.executable)')"
  elif has_command python3 && python_will_do python3; then
    PYTHON="$(python3 -c 'import sys; print(sys.executable)')"
  else
    if [[ ! -x "$ROOT/.venv/bin/python" ]] || ! python_will_do "$ROOT/.venv/bin/python"; then make_venv; fi
    PYTHON="$ROOT/.venv/bin/python"
  fi
  say "uses $PYTHON, $("$PYTHON" -c 'from importlib.metadata import version; print("torch", version("torch"))')"
}

ensure_python_headers() {
  local include
  include="$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')"
  if [[ ! -e "$include/Python.h" ]]; then apt_install python3-dev; fi
}

# ---- The stamp, the build ---------------------------------------------------------------------------------------

# Changes when what is needed changes, or when another python3 or compiler comes first.
requirements_hash() {
  {
    cat "$ROOT/scripts/requirements.txt" "$ROOT/scripts/lib/setup.sh" "$ROOT/scripts/lib/check_python.py"
    printf '%s\n' "$(command -v python3)" "${LIVEPOOL_PYTHON:-}" "${CXX:-}"
  } | sha256sum | cut -d' ' -f1
}

# Sets PYTHON from the stamp; fails where the stamp is not from the same requirements, or the interpreter changed.
use_stamp() {
  [[ -r "$STAMP" ]] || return 1
  local hash
  { read -r hash && read -r PYTHON; } <"$STAMP" || return 1
  [[ "$hash" == "$(requirements_hash)" && -x "$PYTHON" && -z "$(python_lacks "$PYTHON" 2>&1)" ]]
}

# Memory decides, too: one compiler that reads torch's headers takes about 2 GiB.
build_jobs() {
  local cores gib
  cores="$(nproc)"
  gib="$(awk '/MemAvailable/ { print int($2 / 2097152) }' /proc/meminfo 2>/dev/null || echo "$cores")"
  echo "$((gib < 1 ? 1 : gib < cores ? gib : cores))"
}

build() {
  local configured_for
  configured_for="$(sed -n 's/^LIVEPOOL_PYTHON:[A-Z]*=//p' "$BUILD/CMakeCache.txt" 2>/dev/null || true)"
  if [[ ! -e "$BUILD/build.ninja" || "$configured_for" != "$PYTHON" ]]; then
    say "configures build/release"
    (cd "$ROOT" && cmake --preset release "-DLIVEPOOL_PYTHON:FILEPATH=$PYTHON" >&2) || die "CMake failed, see above"
  fi
  say "builds build/release"
  NINJA_STATUS='[%f/%t, %es] ' cmake --build "$BUILD" --parallel "$(build_jobs)" >&2 || die "the build failed, see above"
}

livepool_setup() {
  mkdir -p "$ROOT/build"
  exec 9>"$ROOT/build/setup.lock"
  if has_command flock && ! flock -n 9; then
    say "waits for another script that sets up or builds"
    flock 9
  fi
  if ! use_stamp; then
    ensure_packages
    find_python
    ensure_python_headers
    printf '%s\n%s\n' "$(requirements_hash)" "$PYTHON" >"$STAMP"
  fi
  build
  exec 9>&-
  export PYTHONPATH="$BUILD/python:$EXTRA_PACKAGES${PYTHONPATH:+:$PYTHONPATH}"
}
