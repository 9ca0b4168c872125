#include "livepool/torch/install.h"

#include <string>

#include "livepool/base/env.h"
#include "livepool/base/error.h"
#include "livepool/torch/eager_code.h"
#include "livepool/torch/report.h"

namespace livepool {

void Install(DeviceId::Kind kind) {
  CheckTorchVersion();
  kind == DeviceId::Kind::kHost ? detail::InstallCpu() : detail::InstallCuda();
  detail::ReportAtExit();
  if (kind == DeviceId::Kind::kHost && GetEnv().serve_eager_code) ServeEagerCode();
}

bool Installed(DeviceId::Kind kind) {
  return kind == DeviceId::Kind::kHost ? detail::CpuInstalled() : detail::CudaInstalled();
}

ArenaPool& PoolOf(DeviceId device) {
  if (!Installed(device.kind)) {
    throw NotInstalled("livepool is not installed for " + device.Name() + ": call livepool.install(\"" +
                       (device.kind == DeviceId::Kind::kHost ? "cpu" : "cuda") + "\") first");
  }
  return device.kind == DeviceId::Kind::kHost ? detail::CpuPool() : detail::CudaPool(device.index);
}

std::vector<ArenaPool*> AllPools() {
  std::vector<ArenaPool*> pools;
  if (Installed(DeviceId::Kind::kHost)) pools.push_back(&detail::CpuPool());
  if (Installed(DeviceId::Kind::kCuda)) {
    for (ArenaPool* pool : detail::CudaPools()) pools.push_back(pool);
  }
  return pools;
}

void SetMemoryLimit(std::optional<Bytes> bytes) {
  if (bytes.has_value() && *bytes < 0)
    throw InvalidInput("a memory limit of " + std::to_string(*bytes) + " bytes: use 0 or more, or none");
  detail::SetCudaMemoryLimit(bytes);
}

std::optional<Bytes> MemoryLimitBytes() { return detail::CudaMemoryLimit(); }

Bytes TrimArenas() {
  // A found pass of this thread ends when the next one begins, which may never be.
  if (FoundPasses* found = detail::FoundPassesOfThread()) found->End();
  const std::vector<ArenaPool*> pools = AllPools();
  for (const ArenaPool* pool : pools) pool->CheckTrim();
  Bytes freed = 0;
  for (ArenaPool* pool : pools) freed += pool->Trim();
  return freed;
}

}  // namespace livepool
