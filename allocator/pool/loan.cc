#include "livepool/pool/loan.h"

namespace livepool {
namespace {

// Of the calling thread. Unlike addresses and the system's ids it never comes again: a new thread must not end what an
// old one has left.
std::uint64_t ThreadNumber() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

Loan::Loan(const std::byte* begin, Bytes size) : begin_(begin), size_(size), owner_(ThreadNumber()) {}

bool Loan::Mine() const { return owner_ == ThreadNumber(); }

}  // namespace livepool
