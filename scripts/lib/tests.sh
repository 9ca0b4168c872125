# Sourced by scripts/test and scripts/gpu-test, after setup.sh: runs the tests and sums them up.

RESULTS="$ROOT/build/test-results"

# run_tests gpu|no-gpu|all [SANITIZER...]: returns 1 when a test fails, or when a runner ends in another bad way.
# All runners always run: ctest, pytest, and for each sanitizer ctest on the torch-free code built with it. The last
# line on stdout is `N passed, N failed, N skipped`.
run_tests() {
  local which="$1" ctest_filter=() pytest_filter=() code runs=() options=() left_out=0 sanitizer why_not
  case "$which" in
    gpu) ctest_filter=(-L '^gpu$') pytest_filter=(-m gpu) ;;
    no-gpu) ctest_filter=(-LE '^gpu$') ;;
  esac
  rm -rf "$RESULTS" && mkdir -p "$RESULTS"

  say "runs ctest"
  run_ctest "$BUILD" ctest "${ctest_filter[@]}" && code=0 || code=$?
  runs+=(ctest "$code" "$RESULTS/ctest.xml")
  if [[ "$which" == no-gpu ]]; then
    left_out="$(ctest --test-dir "$BUILD" -N -L '^gpu$' | sed -n 's/^Total Tests: //p')"
  fi

  say "runs pytest"
  (cd "$ROOT" && "$PYTHON" -m pytest -rs -q --junitxml "$RESULTS/pytest.xml" "${pytest_filter[@]}") && code=0 || code=$?
  runs+=(pytest "$code" "$RESULTS/pytest.xml")

  for sanitizer in "${@:2}"; do
    if why_not="$(sanitizer_lacks "$sanitizer")"; then
      run_sanitized "$sanitizer" && code=0 || code=$?
      runs+=("$sanitizer" "$code" "$RESULTS/$sanitizer.xml")
    else
      options+=(--not-run "$sanitizer: $why_not")
    fi
  done

  "$PYTHON" "$ROOT/scripts/lib/summarise.py" --left-out "${left_out:-0}" "${options[@]}" "${runs[@]}"
}

# run_ctest BUILD NAME [FILTER...]: one test may use several threads, so that one test a core is enough.
run_ctest() {
  ctest --test-dir "$1" "${@:3}" --output-on-failure --no-tests=error --parallel "$(nproc)" \
    --output-junit "$RESULTS/$2.xml"
}

# ---- Sanitizers: presets of CMakePresets.json -------------------------------------------------------------------

# Succeeds where programs built with the preset's sanitizer run; otherwise prints why not. Some kernels and containers
# forbid what a sanitizer needs: its address layout, or to trace itself.
sanitizer_lacks() {
  local flags=address,undefined folder output
  if [[ "$1" == tsan ]]; then flags=thread; fi
  folder="$(mktemp -d)"
  if output="$(echo 'int main() { return 0; }' | "${CXX:-c++}" -x c++ - "-fsanitize=$flags" -o "$folder/a.out" 2>&1)" &&
    output="$("$folder/a.out" 2>&1)"; then
    rm -rf "$folder"
    return 0
  fi
  rm -rf "$folder"
  printf 'a program built with -fsanitize=%s does not run here: %s\n' "$flags" "${output%%$'\n'*}"
  return 1
}

# Builds the torch-free code and its tests with the preset's sanitizer, and runs them.
run_sanitized() {
  local folder="$ROOT/build/$1-core"
  say "builds and runs the torch-free tests with $1"
  (cd "$ROOT" && cmake --preset "$1" -B "$folder" -DLIVEPOOL_WITH_TORCH=OFF -DLIVEPOOL_BUILD_BENCHMARKS=OFF >&2) &&
    NINJA_STATUS='[%f/%t, %es] ' cmake --build "$folder" --parallel "$(build_jobs)" >&2 &&
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 run_ctest "$folder" "$1" -LE '^gpu$'
}
