#include "livepool/pool/loan.h"

#include "livepool/pool/thread_state.h"

namespace livepool {

Loan::Loan(const std::byte* begin, Bytes size) : begin_(begin), size_(size), owner_(ThreadNumber()) {}

bool Loan::Mine() const { return owner_ == ThreadNumber(); }

}  // namespace livepool
