// Memory for a recursion: taken in order, given back in reverse order.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace livepool {

class BumpArena {
 public:
  // Gives back, at the end of its scope, what was taken after it.
  class Scope {
   public:
    explicit Scope(BumpArena& arena) : arena_(arena), chunk_(arena.chunk_), used_(arena.used_) {}
    ~Scope() {
      arena_.chunk_ = chunk_;
      arena_.used_ = used_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    BumpArena& arena_;
    std::size_t chunk_;
    std::size_t used_;
  };

  // Room for `count` objects, which are not made: T must be trivial. It does not move.
  template <typename T>
  T* Take(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
    return static_cast<T*>(TakeBytes(count * sizeof(T)));
  }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 18;

  void* TakeBytes(std::size_t bytes) {
    bytes = (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
    while (chunk_ == chunks_.size() || used_ + bytes > chunks_[chunk_].size) {
      if (chunk_ < chunks_.size()) ++chunk_;
      used_ = 0;
      if (chunk_ == chunks_.size()) {
        const std::size_t size = bytes > kChunkBytes ? bytes : kChunkBytes;
        chunks_.push_back({std::make_unique<std::byte[]>(size), size});
      }
    }
    void* const memory = chunks_[chunk_].memory.get() + used_;
    used_ += bytes;
    return memory;
  }

  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    std::size_t size = 0;
  };

  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // the one in use; equal to chunks_.size() if there is none yet
  std::size_t used_ = 0;   // of it
};

}  // namespace livepool
