# Sourced by scripts/test and scripts/gpu-test, after setup.sh: runs both kinds of tests and sums them up.

RESULTS="$ROOT/build/test-results"

# run_tests gpu|no-gpu|all: returns 1 when a test fails, or when a runner ends in another bad way.
# Both runners always run; the last line on stdout is `N passed, N failed, N skipped`.
run_tests() {
  local which="$1" ctest_filter=() pytest_filter=() codes=() left_out=0
  case "$which" in
    gpu) ctest_filter=(-L '^gpu$') pytest_filter=(-m gpu) ;;
    no-gpu) ctest_filter=(-LE '^gpu$') ;;
  esac
  rm -rf "$RESULTS" && mkdir -p "$RESULTS"

  say "runs ctest"
  # One test may use several threads, so that one test a core is enough.
  ctest --test-dir "$BUILD" "${ctest_filter[@]}" --output-on-failure --no-tests=error --parallel "$(nproc)" \
    --output-junit "$RESULTS/ctest.xml" && codes+=(0) || codes+=($?)
  if [[ "$which" == no-gpu ]]; then
    left_out="$(ctest --test-dir "$BUILD" -N -L '^gpu$' | sed -n 's/^Total Tests: //p')"
  fi

  say "runs pytest"
  (cd "$ROOT" && PYTHONPATH="$ROOT/scripts/lib:$PYTHONPATH" "$PYTHON" -m pytest -p pytest_needs_gpu -rs -q \
    --junitxml "$RESULTS/pytest.xml" "${pytest_filter[@]}") && codes+=(0) || codes+=($?)

  "$PYTHON" "$ROOT/scripts/lib/summarise.py" --left-out "${left_out:-0}" \
    ctest "${codes[0]}" "$RESULTS/ctest.xml" pytest "${codes[1]}" "$RESULTS/pytest.xml"
}
