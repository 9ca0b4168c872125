// The driver's functions on numbers. FakeDriverEntry (fake_driver.cc) calls them with mutex_ held.
#include "allocator/backend/fake_driver.h"

namespace livepool {

cuda::Result FakeDriver::Init(unsigned int flags) { return flags == 0 ? cuda::kSuccess : Misuse("Init: flags"); }

cuda::Result FakeDriver::GetErrorString(cuda::Result error, const char** text) {
  *text = error == cuda::kOutOfMemory ? "out of memory" : error == cuda::kSuccess ? "no error" : "fake error";
  return cuda::kSuccess;
}

cuda::Result FakeDriver::DeviceGet(cuda::Device* device, int ordinal) {
  if (ordinal < 0 || ordinal >= options_.devices) return cuda::kInvalidDevice;
  *device = ordinal;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::DeviceGetAttribute(int* value, int attribute, cuda::Device) {
  if (attribute != cuda::kAttributeVirtualMemoryManagement) return Misuse("DeviceGetAttribute: attribute");
  *value = options_.can_map_memory ? 1 : 0;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::PrimaryCtxRetain(cuda::Context* context, cuda::Device) {
  ++retained_;
  *context = this;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::PrimaryCtxRelease(cuda::Device) {
  if (retained_ == 0) return Misuse("PrimaryCtxRelease: not retained");
  --retained_;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::CtxPushCurrent(cuda::Context context) {
  if (context != this) return Misuse("CtxPushCurrent: not a context");
  ++pushed_[std::this_thread::get_id()];
  return cuda::kSuccess;
}

cuda::Result FakeDriver::CtxPopCurrent(cuda::Context* context) {
  if (const cuda::Result result = RequireContext("CtxPopCurrent"); result != cuda::kSuccess) return result;
  --pushed_[std::this_thread::get_id()];
  *context = this;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemGetInfo(std::size_t* free, std::size_t* total) {
  if (const cuda::Result result = RequireContext("MemGetInfo"); result != cuda::kSuccess) return result;
  *free = static_cast<std::size_t>(options_.capacity - allocated_);
  *total = static_cast<std::size_t>(options_.capacity);
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemGetAllocationGranularity(std::size_t* granularity, const cuda::AllocationProp*, int) {
  *granularity = static_cast<std::size_t>(options_.granularity);
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemAddressReserve(cuda::DevicePtr* address, std::size_t size, std::size_t alignment,
                                           cuda::DevicePtr, unsigned long long flags) {
  const auto granule = static_cast<std::size_t>(options_.granularity);
  if (size == 0 || size % 4096 != 0 || alignment % granule != 0 || flags != 0) return Misuse("MemAddressReserve");
  const cuda::DevicePtr used = next_address_ - kFirstAddress;
  if (size > static_cast<std::size_t>(options_.address_space) - used) return cuda::kOutOfMemory;
  *address = next_address_;
  reservations_[next_address_] = static_cast<Bytes>(size);
  next_address_ += (size + granule - 1) / granule * granule;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemCreate(cuda::PageHandle* handle, std::size_t size, const cuda::AllocationProp* prop,
                                   unsigned long long flags) {
  const auto bytes = static_cast<Bytes>(size);
  const int device = prop->location.id;
  if (bytes == 0 || bytes % options_.granularity != 0 || flags != 0) return Misuse("MemCreate: size or flags");
  if (device < 0 || device >= options_.devices) return Misuse("MemCreate: device");
  if (bytes > options_.capacity - allocated_) return cuda::kOutOfMemory;
  allocated_ += bytes;
  *handle = next_handle_++;
  pages_[*handle] = {.size = bytes, .device = device};
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemMap(cuda::DevicePtr address, std::size_t size, std::size_t offset, cuda::PageHandle handle,
                                unsigned long long flags) {
  const auto bytes = static_cast<Bytes>(size);
  const auto page = pages_.find(handle);
  if (page == pages_.end() || !page->second.open) return Misuse("MemMap: the handle was released");
  if (page->second.mapped) return Misuse("MemMap: the page is mapped elsewhere");
  if (bytes != page->second.size || offset != 0 || flags != 0) return Misuse("MemMap: size, offset or flags");
  const auto above = reservations_.upper_bound(address);
  if (above == reservations_.begin()) return Misuse("MemMap: not reserved");
  const auto& [base, reserved] = *std::prev(above);
  if (address + size > base + static_cast<cuda::DevicePtr>(reserved)) return Misuse("MemMap: not reserved");
  const auto next = mappings_.lower_bound(address);
  const bool hits_next = next != mappings_.end() && next->first < address + size;
  const bool hits_previous = next != mappings_.begin() && End(*std::prev(next)) > address;
  if (hits_next || hits_previous) return Misuse("MemMap: the address is mapped already");
  page->second.mapped = true;
  mappings_[address] = {.size = bytes, .page = handle};
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemSetAccess(cuda::DevicePtr address, std::size_t size, const cuda::AccessDesc* access,
                                      std::size_t count) {
  const std::vector<cuda::DevicePtr> tiles = Tiles(address, static_cast<Bytes>(size));
  if (tiles.empty()) return Misuse("MemSetAccess: the range is not mapped");
  if (count != 1 || access->flags != cuda::kAccessReadWrite) return Misuse("MemSetAccess: flags");
  for (const cuda::DevicePtr tile : tiles) mappings_.at(tile).accessible = true;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemUnmap(cuda::DevicePtr address, std::size_t size) {
  const std::vector<cuda::DevicePtr> tiles = Tiles(address, static_cast<Bytes>(size));
  if (tiles.empty()) return Misuse("MemUnmap: the range is not whole mappings");
  if (tiles.size() > 1 && !options_.unmaps_many_at_once) return cuda::kInvalidValue;
  for (const cuda::DevicePtr tile : tiles) {
    const cuda::PageHandle handle = mappings_.at(tile).page;
    mappings_.erase(tile);
    pages_.at(handle).mapped = false;
    FreeIfUnused(handle);
  }
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemRelease(cuda::PageHandle handle) {
  const auto page = pages_.find(handle);
  if (page == pages_.end() || !page->second.open) return Misuse("MemRelease: the handle was released before");
  page->second.open = false;
  FreeIfUnused(handle);
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemsetD8Async(cuda::DevicePtr address, unsigned char, std::size_t count, cuda::Stream) {
  if (const cuda::Result result = RequireContext("MemsetD8Async"); result != cuda::kSuccess) return result;
  const cuda::DevicePtr end = address + count;
  for (cuda::DevicePtr at = address; at < end;) {
    const auto found = MappingAt(at);
    if (found == mappings_.end()) return Misuse("MemsetD8Async: not mapped");
    if (!found->second.accessible) return Misuse("MemsetD8Async: mapped without access");
    at = End(*found);
  }
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemGetAccess(unsigned long long* flags, const cuda::Location*, cuda::DevicePtr address) {
  const auto found = MappingAt(address);
  if (found == mappings_.end()) return cuda::kInvalidValue;
  *flags = found->second.accessible ? cuda::kAccessReadWrite : 0;
  return cuda::kSuccess;
}

cuda::Result FakeDriver::MemcpyDtoH(void*, cuda::DevicePtr, std::size_t) {
  return Misuse("MemcpyDtoH: the fake driver's memory has no contents");
}

}  // namespace livepool
