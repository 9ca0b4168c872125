// A stretch of a thread's allocations, in which repeating passes are looked for.
#pragma once

#include <cstddef>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "livepool/eager/pass_record.h"

namespace livepool {

// One allocation outside of any scope. Sites and depths are bytes below a point that is fixed for the thread, so they
// can be compared throughout.
struct Token {
  static constexpr Site kNoFree = std::numeric_limits<Site>::max();

  Key key;
  // Of the shallowest stack frame that has freed something since the allocation before; kNoFree: nothing was freed.
  Site depth = kNoFree;
  Position death = PassRecord::kAlive;  // Note [Time in allocations], in positions of the window
};

// Records up to `capacity` tokens. Used by one thread. Throws std::bad_alloc, but for NoteFree.
class TokenWindow {
 public:
  explicit TokenWindow(std::size_t capacity) : capacity_(capacity) {}

  bool full() const { return tokens_.size() == capacity_; }
  // Not when full.
  void Add(const Key& key, Site depth) { tokens_.push_back({.key = key, .depth = depth}); }
  // Where the last allocation has come to lie.
  void NoteAddress(const void* address) { at_[address] = static_cast<Position>(tokens_.size() - 1); }
  void NoteFree(const void* address) noexcept {
    const auto it = at_.find(address);
    if (it == at_.end()) return;  // from before the window
    tokens_[it->second].death = static_cast<Position>(tokens_.size());
    at_.erase(it);
  }

  const std::vector<Token>& tokens() const { return tokens_; }
  std::vector<Token> TakeTokens() { return std::move(tokens_); }

 private:
  const std::size_t capacity_;
  std::vector<Token> tokens_;
  std::unordered_map<const void*, Position> at_;  // live ones
};

}  // namespace livepool
