#include "allocator/backend/fake_driver.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace livepool {
namespace {

std::atomic<FakeDriver*> active{nullptr};

#define LIVEPOOL_FAKE_NAME(member, symbol, parameters) constexpr char kName##member[] = #member;
LIVEPOOL_CUDA_DRIVER_FUNCTIONS(LIVEPOOL_FAKE_NAME)
#undef LIVEPOOL_FAKE_NAME

}  // namespace

// The function of the table that ends in `Method` of the live object.
template <auto Method, const char* Name>
struct FakeDriverEntry;
template <typename... Args, cuda::Result (FakeDriver::*Method)(Args...), const char* Name>
struct FakeDriverEntry<Method, Name> {
  static cuda::Result Call(Args... args) {
    FakeDriver* const fake = active.load();
    if (fake == nullptr) return cuda::kDeinitialized;
    const std::lock_guard lock(fake->mutex_);
    const cuda::Result injected = fake->Enter(Name);
    return injected != cuda::kSuccess ? injected : (fake->*Method)(args...);
  }
  static void Install(cuda::Result (*&entry)(Args...)) { entry = &Call; }
};

const CudaDriver& FakeDriver::table() {
  static const CudaDriver table = [] {
    CudaDriver driver;
#define LIVEPOOL_FAKE_ENTRY(member, symbol, parameters) \
  FakeDriverEntry<&FakeDriver::member, kName##member>::Install(driver.member);
    LIVEPOOL_CUDA_DRIVER_FUNCTIONS(LIVEPOOL_FAKE_ENTRY)
#undef LIVEPOOL_FAKE_ENTRY
    return driver;
  }();
  return table;
}

FakeDriver::FakeDriver(const Options& options) : options_(options) {
  FakeDriver* none = nullptr;
  if (active.compare_exchange_strong(none, this)) return;
  std::fputs("FakeDriver: one object at a time\n", stderr);
  std::abort();
}

FakeDriver::~FakeDriver() { active.store(nullptr); }

// ---- what tests set and ask ----

void FakeDriver::FailNthCall(int n, cuda::Result result) {
  const std::lock_guard lock(mutex_);
  calls_to_failure_ = n;
  fails_on_ = false;
  failure_ = result;
  failed_function_.clear();
}

void FakeDriver::FailFromNthCall(int n, cuda::Result result) {
  FailNthCall(n, result);
  const std::lock_guard lock(mutex_);
  fails_on_ = true;
}

void FakeDriver::FailEvery(const std::string& function, cuda::Result result) {
  const std::lock_guard lock(mutex_);
  failing_[function] = result;
}

void FakeDriver::Heal() {
  const std::lock_guard lock(mutex_);
  failing_.clear();
  calls_to_failure_ = 0;
}

void FakeDriver::set_capacity(Bytes capacity) {
  const std::lock_guard lock(mutex_);
  options_.capacity = capacity;
}

void FakeDriver::ShutDown() {
  const std::lock_guard lock(mutex_);
  shut_down_ = true;
}

std::string FakeDriver::failed_function() const {
  const std::lock_guard lock(mutex_);
  return failed_function_;
}

int FakeDriver::calls(const std::string& function) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

int FakeDriver::refused(const std::string& function) const {
  const std::lock_guard lock(mutex_);
  const auto found = refused_.find(function);
  return found == refused_.end() ? 0 : found->second;
}

Bytes FakeDriver::allocated() const {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

Bytes FakeDriver::mapped() const {
  const std::lock_guard lock(mutex_);
  Bytes sum = 0;
  for (const auto& [address, mapping] : mappings_) sum += mapping.size;
  return sum;
}

int FakeDriver::open_handles() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(pages_.begin(), pages_.end(), [](const auto& p) { return p.second.open; }));
}

int FakeDriver::pushed_contexts() const {
  const std::lock_guard lock(mutex_);
  const auto found = pushed_.find(std::this_thread::get_id());
  return found == pushed_.end() ? 0 : found->second;
}

int FakeDriver::retained_contexts() const {
  const std::lock_guard lock(mutex_);
  return retained_;
}

bool FakeDriver::IsAccessible(const std::byte* address, int device) const {
  const std::lock_guard lock(mutex_);
  const cuda::DevicePtr wanted = reinterpret_cast<std::uintptr_t>(address);
  const auto found = MappingAt(wanted);
  return found != mappings_.end() && found->second.accessible && pages_.at(found->second.page).device == device;
}

std::vector<std::string> FakeDriver::misuse() const {
  const std::lock_guard lock(mutex_);
  return misuse_;
}

// ---- bookkeeping; mutex_ is held from here on ----

cuda::Result FakeDriver::Enter(const std::string& function) {
  ++calls_[function];
  const cuda::Result result = InjectedFailure(function);
  if (result != cuda::kSuccess) ++refused_[function];
  return result;
}

cuda::Result FakeDriver::InjectedFailure(const std::string& function) {
  if (shut_down_) return cuda::kDeinitialized;
  if (const auto found = failing_.find(function); found != failing_.end()) return found->second;
  if (calls_to_failure_ == 0) return cuda::kSuccess;
  if (calls_to_failure_ > 1) return --calls_to_failure_, cuda::kSuccess;
  if (failed_function_.empty()) failed_function_ = function;
  if (!fails_on_) calls_to_failure_ = 0;
  return failure_;
}

cuda::Result FakeDriver::Misuse(const std::string& what) {
  misuse_.push_back(what);
  return cuda::kInvalidValue;
}

cuda::Result FakeDriver::RequireContext(const std::string& function) {
  if (pushed_[std::this_thread::get_id()] > 0) return cuda::kSuccess;
  misuse_.push_back(function + ": no context is current");
  return cuda::kInvalidContext;
}

FakeDriver::Mappings::const_iterator FakeDriver::MappingAt(cuda::DevicePtr address) const {
  const auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return mappings_.end();
  const auto found = std::prev(next);
  return address < End(*found) ? found : mappings_.end();
}

std::vector<cuda::DevicePtr> FakeDriver::Tiles(cuda::DevicePtr address, Bytes size) const {
  std::vector<cuda::DevicePtr> tiles;
  const cuda::DevicePtr end = address + static_cast<cuda::DevicePtr>(size);
  for (cuda::DevicePtr at = address; at < end;) {
    const auto found = mappings_.find(at);
    if (found == mappings_.end()) return {};
    tiles.push_back(at);
    at = End(*found);
    if (at > end) return {};
  }
  return tiles;
}

void FakeDriver::FreeIfUnused(cuda::PageHandle handle) {
  const Page& page = pages_.at(handle);
  if (page.open || page.mapped) return;
  allocated_ -= page.size;
  pages_.erase(handle);
}

}  // namespace livepool
