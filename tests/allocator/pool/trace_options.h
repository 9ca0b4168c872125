// How long the random tests run, and from which seed:
//
//     POOL_TEST_OPERATIONS=10000000 pool_test --gtest_filter='PoolRandom*:PoolThreads*'     the long mode
//     POOL_TEST_SEED=17 pool_test --gtest_filter='PoolRandom*'                              one seed again
//
// Without the variables they take some seconds.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>

namespace livepool::testing {

inline std::optional<std::int64_t> FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::int64_t>(std::atoll(value));
}
inline std::optional<std::int64_t> OnlySeed() { return FromEnvironment("POOL_TEST_SEED"); }
// Allocations, frees and what lies between them, over all seeds.
inline std::int64_t Operations(std::int64_t otherwise) {
  return FromEnvironment("POOL_TEST_OPERATIONS").value_or(otherwise);
}

}  // namespace livepool::testing
