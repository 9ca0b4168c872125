#include "cuda_graph.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "device_context.h"
#include "livepool/torch/cuda_pass.h"

namespace livepool {
namespace {

bool IsCapturing(cudaStream_t stream, cudaStreamCaptureStatus wanted) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) (void)cudaGetLastError();
  return status == wanted;
}

template <typename Function>
void IgnoringErrors(const Function& function) noexcept {
  try {
    function();
  } catch (const std::exception&) {
    // What had not been begun cannot be ended.
  }
}

class TorchGraph final : public at::cuda::CUDAGraph {
 public:
  // Note [A capture that failed]
  // torch leaves the stream capturing, the pools open, and the generators in a state in which no other draw works.
  // This does what capture_end would have done, as far as it has not been done.
  void Abandon() noexcept {
    if (!IsCapturing(capture_stream_.stream(), cudaStreamCaptureStatusNone)) {
      cudaGraph_t broken = nullptr;
      (void)cudaStreamEndCapture(capture_stream_.stream(), &broken);
      if (broken != nullptr) (void)cudaGraphDestroy(broken);
    }
    (void)cudaGetLastError();  // or torch would blame its next call
    for (auto& each : captured_generator_states_) each.first->capturing_ = false;
    if (capture_ended_ || capture_dev_ < 0) return;  // then the destructor releases the pools
    auto* device = c10::cuda::CUDACachingAllocator::get();
    at::HostAllocator* host = at::getHostAllocator(at::kCUDA);
    IgnoringErrors([&] { device->endAllocateToPool(capture_dev_, mempool_id_); });
    IgnoringErrors([&] { host->end_allocate_to_pool(mempool_id_); });
    IgnoringErrors([&] { device->releasePool(capture_dev_, mempool_id_); });
    IgnoringErrors([&] { host->release_pool(mempool_id_); });
  }

  // capture_end fails only where no graph can be had; an invalid capture it would leave half ended.
  void End() {
    TORCH_CHECK(IsCapturing(capture_stream_.stream(), cudaStreamCaptureStatusActive),
                "an operation that cannot be part of a CUDA graph has ended the capture");
    capture_end();
  }
};

// Note [Workspaces of cuBLAS in graphs]
// torch keeps one workspace for each pair of handle and stream, for good. For our stream, which nobody else can get
// (streams of torch's own are handed out again and again), it is made inside the capture, so that it is memory of the
// graph pool, and forgotten after it: the next capture, by whichever thread, gets the same bytes, and they go when the
// last graph does.
template <typename Map>
bool IsOf(cudaStream_t stream, const typename Map::value_type& workspace) {
  return std::get<1>(workspace.first) == static_cast<void*>(stream);
}

bool HasWorkspace(cudaStream_t stream) {
  for (auto* workspaces :
       {&at::cuda::cublas_handle_stream_to_workspace(), &at::cuda::cublaslt_handle_stream_to_workspace()}) {
    const std::unique_lock lock(workspaces->mutex);
    for (const auto& each : workspaces->map) {
      if (IsOf<std::decay_t<decltype(workspaces->map)>>(stream, each)) return true;
    }
  }
  return false;
}

void ForgetWorkspaces(cudaStream_t stream) {
  std::vector<c10::DataPtr> forgotten;  // freed without torch's lock: observers of frees may want Python's
  for (auto* workspaces :
       {&at::cuda::cublas_handle_stream_to_workspace(), &at::cuda::cublaslt_handle_stream_to_workspace()}) {
    const std::unique_lock lock(workspaces->mutex);
    for (auto it = workspaces->map.begin(); it != workspaces->map.end();) {
      if (!IsOf<std::decay_t<decltype(workspaces->map)>>(stream, *it)) {
        ++it;
        continue;
      }
      forgotten.push_back(std::move(it->second));
      it = workspaces->map.erase(it);
    }
  }
}

}  // namespace

struct GraphHome::Impl {
  explicit Impl(ArenaPool& arenas) : pool(arenas), device(static_cast<c10::DeviceIndex>(arenas.device().index)) {}

  PlannedArena* Home() {
    const std::lock_guard lock(mutex);
    return arena;
  }
  bool MakeHome(PlannedArena& made) {
    const std::lock_guard lock(mutex);
    if (arena != nullptr) return false;
    arena = &made;
    return true;
  }

  ArenaPool& pool;
  const c10::DeviceIndex device;
  std::mutex mutex;  // guards what follows
  PlannedArena* arena = nullptr;
  int inhabitants = 0;
  int graphs = 0;  // that use `mempool`; torch frees a pool that nobody uses, and its id is dead then
  c10::MempoolId_t mempool{0, 0};
  std::optional<c10::cuda::CUDAStream> stream;
  cudaStream_t callers_stream = nullptr;  // of the capture that is under way; the holder of the arena only
};

GraphHome::GraphHome(std::unique_ptr<Impl> impl) : impl_(impl.release()) {}

GraphHome& GraphHome::Of(ArenaPool& pool) {
  static std::mutex mutex;
  static auto& homes = *new std::map<const ArenaPool*, GraphHome*>;
  const std::lock_guard lock(mutex);
  GraphHome*& home = homes[&pool];
  if (home == nullptr) home = new GraphHome(std::make_unique<Impl>(pool));
  return *home;
}

void GraphHome::Enter() {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->inhabitants;
}

void GraphHome::Leave() {
  const std::lock_guard lock(impl_->mutex);
  if (--impl_->inhabitants == 0) impl_->arena = nullptr;
}

PlannedArena* GraphHome::TryHold(Bytes height) {
  PlannedArena* arena = impl_->Home();
  if (arena == nullptr) {
    // Without the lock: where memory is short, upstream is asked to give back what it has cached.
    PlannedArena& borrowed = impl_->pool.Borrow(height);
    if (impl_->MakeHome(borrowed)) return &borrowed;
    impl_->pool.Return(borrowed);
    arena = impl_->Home();  // another thread was faster
  }
  return arena != nullptr && impl_->pool.TryBorrow(*arena, height) ? arena : nullptr;
}

void GraphHome::Return(PlannedArena& arena) { impl_->pool.Return(arena); }

struct CaptureStream::Impl {
  Impl(c10::DeviceIndex index, c10::cuda::CUDAStream stream)
      : device(index), caller(c10::cuda::getCurrentCUDAStream(index)), own(stream) {}

  // What `after` gets from now on runs after what `before` has been given.
  static void Order(cudaStream_t before, cudaStream_t after) {
    cudaEvent_t event = nullptr;
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    const cudaError_t recorded = cudaEventRecord(event, before);
    const cudaError_t waits = recorded == cudaSuccess ? cudaStreamWaitEvent(after, event, 0) : recorded;
    (void)cudaEventDestroy(event);  // freed once it has happened
    C10_CUDA_CHECK(waits);
  }

  c10::cuda::CUDAGuard device;
  const c10::cuda::CUDAStream caller;
  const c10::cuda::CUDAStream own;
  std::optional<c10::cuda::CUDAStreamGuard> current;
};

CaptureStream::CaptureStream(GraphHome& home)
    : impl_([&] {
        GraphHome::Impl& shared = *home.impl_;
        const std::lock_guard lock(shared.mutex);
        if (!shared.stream) {
          const c10::cuda::CUDAGuard device(shared.device);
          cudaStream_t stream = nullptr;
          C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
          shared.stream = c10::cuda::getStreamFromExternal(stream, shared.device);
        }
        return std::make_unique<Impl>(shared.device, *shared.stream);
      }()) {
  home.impl_->callers_stream = impl_->caller.stream();
  Impl::Order(impl_->caller, impl_->own);
  impl_->current.emplace(impl_->own);
}

CaptureStream::~CaptureStream() {
  IgnoringErrors([&] { Impl::Order(impl_->own, impl_->caller); });
}

struct CudaGraph::Impl {
  Impl(GraphHome::Impl& shared, Arena& memory) : home(shared), arena(memory) { arena.Pin(); }
  ~Impl() {
    const std::lock_guard lock(home.mutex);
    graph.reset();
    if (counted) --home.graphs;
    arena.Unpin();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Begin(const std::vector<at::Generator>& generators) {
    graph = std::make_unique<TorchGraph>();
    // Asks upstream for memory, whose observers may want Python's lock: hence without ours.
    for (const at::Generator& generator : generators) {
      if (generator.device().is_cuda()) graph->register_generator_state(generator);
    }
    const std::lock_guard lock(home.mutex);
    if (home.graphs == 0) home.mempool = at::cuda::graph_pool_handle();
    // Thread-local: other threads may go on doing what would break a capture of theirs.
    graph->capture_begin(home.mempool, cudaStreamCaptureModeThreadLocal);
    ++home.graphs;
    counted = true;
  }

  GraphHome::Impl& home;
  Arena& arena;
  std::unique_ptr<TorchGraph> graph;
  bool counted = false;
};

CudaGraph::CudaGraph(GraphHome& home, PlannedArena& arena, const std::vector<at::Generator>& generators,
                     const std::function<void()>& work)
    : impl_(std::make_unique<Impl>(*home.impl_, arena.arena())) {
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(home.impl_->device);
  const OwnCaptureScope own;
  try {
    impl_->Begin(generators);
    if (HasWorkspace(home.impl_->callers_stream)) (void)at::cuda::getCurrentCUDABlasHandle();
    work();
    impl_->graph->End();
  } catch (...) {
    {
      const std::lock_guard lock(home.impl_->mutex);
      if (impl_->graph != nullptr) impl_->graph->Abandon();
    }
    ForgetWorkspaces(stream);
    throw;
  }
  ForgetWorkspaces(stream);
}

CudaGraph::~CudaGraph() = default;

void CudaGraph::Launch() { impl_->graph->replay(); }

}  // namespace livepool
