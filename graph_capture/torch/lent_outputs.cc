#include "lent_outputs.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <mutex>
#include <utility>

#include "device_context.h"
#include "livepool/base/error.h"
#include "livepool/torch/cuda_pass.h"
#include "storage_views.h"

namespace livepool {
namespace {

// Holds what owns the bytes until the loan ends.
class SlotLoan final : public Loan {
 public:
  SlotLoan(c10::DataPtr owner, Bytes size)
      : Loan(static_cast<const std::byte*>(owner.get()), size), owner_(std::move(owner)) {}

 private:
  void GiveBack(By) noexcept override { owner_.clear(); }

  c10::DataPtr owner_;
};

class PoisonedLoan final : public Loan {
 public:
  PoisonedLoan(c10::DataPtr copy, Bytes size, Backend& backend, StreamHandle stream)
      : copy_(std::move(copy)), bytes_(size), backend_(backend), stream_(stream) {}

 private:
  void GiveBack(By who) noexcept override {
    if (who == By::kPass) backend_.Fill(static_cast<std::byte*>(copy_.mutable_get()), bytes_, std::byte{0xFF}, stream_);
  }

  c10::DataPtr copy_;  // to the end of the tensor
  const Bytes bytes_;
  Backend& backend_;
  const StreamHandle stream_;
};

// The context of a DataPtr on loan.
using TensorsLoan = std::shared_ptr<Loan>;

void ReturnLoan(void* context) {
  const std::unique_ptr<TensorsLoan> loan(static_cast<TensorsLoan*>(context));
  (*loan)->End(Loan::By::kTensor);
}

bool IsLent(const c10::Storage& storage) { return storage.data_ptr().get_deleter() == &ReturnLoan; }

// The context of a DataPtr on what a launch has written.
struct Launched {
  int device;
  PlannedArena& arena;
  StreamHandle stream;
};

void FreeLaunched(void* context) {
  const std::unique_ptr<Launched> launched(static_cast<Launched*>(context));
  FreedOnDevice(launched->device, launched->arena, launched->stream);
}

}  // namespace

void Lender::Lend(const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& output : outputs) {
    const c10::Storage& storage = output.storage();
    const void* address = storage.data_ptr().get();
    // The address alone is its context where the allocator has served it: not of an argument that another thread has on
    // loan.
    if (!arena_.arena().Contains(address) || storage.data_ptr().get_context() != address) continue;
    const auto size = static_cast<Bytes>(storage.nbytes());
    storage.set_data_ptr(LendData(storage.set_data_ptr(c10::DataPtr(nullptr, storage.device())), size));
  }
}

c10::Storage Lender::LendLaunched(const c10::Storage& bytes) {
  const auto size = static_cast<Bytes>(bytes.nbytes());
  void* address = bytes.mutable_data();
  // A miss of the capture: it lies in the graphs' memory pool, which goes with the graphs.
  if (!arena_.arena().Contains(address)) return CopyOf(bytes);
  auto launched =
      std::make_unique<Launched>(Launched{.device = device_.index, .arena = arena_, .stream = CurrentStream(device_)});
  c10::DataPtr owner(address, launched.release(), &FreeLaunched, bytes.device());
  return {c10::Storage::use_byte_size_t(), bytes.nbytes(), LendData(std::move(owner), size), /*allocator=*/nullptr,
          /*resizable=*/false};
}

c10::DataPtr Lender::LendData(c10::DataPtr owner, Bytes size) {
  const c10::Device device = owner.device();
  void* address = owner.mutable_get();
  if (fill_ != Fill::kNan) return Track(std::make_shared<SlotLoan>(std::move(owner), size), address, device);
  const c10::Storage bytes(c10::Storage::use_byte_size_t(), static_cast<std::size_t>(size), std::move(owner));
  c10::DataPtr copy = CopyOf(bytes).set_data_ptr(c10::DataPtr(nullptr, device));
  address = copy.mutable_get();
  Backend& backend = arena_.arena().backend();
  return Track(std::make_shared<PoisonedLoan>(std::move(copy), size, backend, CurrentStream(device_)), address, device);
}

c10::DataPtr Lender::Track(std::shared_ptr<Loan> loan, void* address, c10::Device device) {
  auto context = std::make_unique<TensorsLoan>(loan);
  arena_.Lend(std::move(loan));
  return {address, context.release(), &ReturnLoan, device};
}

void MoveOutOfArena(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    const c10::Storage& storage = tensor.storage();
    if (!IsLent(storage) || !(*static_cast<TensorsLoan*>(storage.data_ptr().get_context()))->Mine()) continue;
    const c10::Device device = storage.device();
    if (!device.is_cpu() && CapturingStream({DeviceId::Kind::kCuda, device.index()})) {
      throw InvalidInput(
          "an argument lies in livepool's arena, whose bytes change before a CUDA graph that is being captured "
          "now could read them; pass a clone that was made before the capture");
    }
    c10::DataPtr own = CopyOf(storage).set_data_ptr(c10::DataPtr(nullptr, device));
    // The slot's next owner comes after the copy, on whichever stream.
    if (!device.is_cpu()) AsBytes(storage).record_stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
    storage.set_data_ptr_noswap(std::move(own));
  }
}

}  // namespace livepool
