#include "failed_states.h"

#include <random>

namespace livepool {

StateHash::StateHash(std::size_t items, std::size_t sections) : items_(2 * items), sections_(sections) {
  std::mt19937_64 random(20'250'704);  // any number: which one is of no account, that it is always the same is
  for (StateKey& key : items_) key = {random(), random()};
  for (StateKey& key : sections_) key = {random() | 1U, random() | 1U};
}

}  // namespace livepool
