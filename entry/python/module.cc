// The compiled half of the Python package: forwards to the C++ API, translates errors.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "call_key.h"
#include "livepool/base/env.h"
#include "livepool/livepool.h"
#include "livepool/saved_plans.h"
#include "state_watch.h"

#ifdef LIVEPOOL_HAVE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>

#include "livepool/torch/shared_cuda_allocator.h"
#endif

namespace livepool {
namespace {

DeviceId::Kind KindOf(const std::string& device) {
  if (device == "cpu") return DeviceId::Kind::kHost;
  if (device == "cuda") return DeviceId::Kind::kCuda;
  throw InvalidInput("device '" + device + "' is unknown: use 'cpu' or 'cuda'");
}

py::dict ToDict(const GraphReport& report) {
  py::dict dict;
  dict["ops"] = report.ops;
  dict["buffers"] = report.buffers;
  dict["in_place_buffers"] = report.in_place_buffers;
  dict["sum_bytes"] = report.sum_bytes;
  dict["eager_live_peak_bytes"] = report.eager_live_peak_bytes;
  dict["lower_bound_bytes"] = report.lower_bound_bytes;
  dict["arena_bytes"] = report.arena_bytes;
  dict["algorithm"] = report.algorithm;
  dict["searching"] = report.searching;
  dict["as_saved"] = report.as_saved;
  dict["not_as_saved"] = report.not_as_saved;
  dict["capture_ms"] = report.capture_ms;
  dict["plan_ms"] = report.plan_ms;
  dict["replays"] = report.replays;
  dict["hits"] = report.hits;
  dict["misses"] = report.misses;
  dict["checked"] = report.checked;
  dict["launches"] = report.launches;
  dict["graphs"] = report.graphs;
  dict["not_launched"] = report.not_launched;
  return dict;
}

py::dict ToDict(const ScopeStats& stats) {
  py::dict dict;
  dict["passes"] = stats.passes;
  dict["hits"] = stats.hits;
  dict["misses"] = stats.misses;
  dict["upstream"] = stats.upstream;
  dict["divergences"] = stats.divergences;
  dict["kinds"] = stats.kinds;
  dict["units"] = stats.units;
  dict["arena_bytes"] = stats.arena_bytes;
  dict["lower_bound_bytes"] = stats.lower_bound_bytes;
  dict["recorded_peak_bytes"] = stats.recorded_peak_bytes;
  return dict;
}

py::dict ToDict(const EagerCodeStats& stats) {
  py::dict dict = ToDict(stats.passes);
  dict["active"] = stats.why_not.empty();
  dict["why_not"] = stats.why_not;
  dict["threads"] = stats.threads;
  dict["serving"] = stats.serving;
  dict["looking"] = stats.looking;
  dict["asleep"] = stats.asleep;
  dict["allocations"] = stats.allocations;
  return dict;
}

py::dict Stats() {
  PoolStats sum;
  py::dict devices;
  for (const ArenaPool* pool : AllPools()) {
    const PoolStats stats = pool->Stats();
    sum.passes += stats.passes;
    sum.hits += stats.hits;
    sum.misses += stats.misses;
    sum.upstream += stats.upstream;
    sum.refused += stats.refused;
    sum.live_bytes += stats.live_bytes;
    sum.arena_bytes += stats.arena_bytes;
    devices[py::str(pool->device().Name())] = stats.arena_bytes;
  }
  py::dict dict;
  dict["active"] = Installed(DeviceId::Kind::kHost) || Installed(DeviceId::Kind::kCuda);
  dict["cpu"] = Installed(DeviceId::Kind::kHost);
  dict["cuda"] = Installed(DeviceId::Kind::kCuda);
  dict["passes"] = sum.passes;
  dict["hits"] = sum.hits;
  dict["misses"] = sum.misses;
  dict["upstream"] = sum.upstream;
  dict["refused"] = sum.refused;
  dict["live_bytes"] = sum.live_bytes;
  dict["arena_bytes"] = sum.arena_bytes;
  dict["arena_bytes_of"] = devices;
  dict["eager_code"] = ToDict(StatsOfEagerCode());
  return dict;
}

py::dict AllScopeStats() {
  py::dict dict;
  for (const auto& [name, stats] : StatsOfScopes()) dict[py::str(name)] = ToDict(stats);
  return dict;
}

// A Python callable from list of tensors to list of tensors, held weakly: Captured owns it, and a model that holds its
// graph must stay collectable. The weak reference may be destroyed on a thread without the GIL.
Callable ToCallable(const py::object& function) {
  const std::shared_ptr<py::weakref> weak(new py::weakref(function), [](py::weakref* each) {
    const py::gil_scoped_acquire gil;
    delete each;
  });
  return [weak](const Tensors& inputs) {
    const py::gil_scoped_acquire gil;
    const py::object held = (*weak)();
    if (held.is_none()) throw InvalidInput("the callable of this graph is gone");
    return held(inputs).cast<Tensors>();
  };
}

// The same graph, which drops Python's lock when it goes: it waits for locks then whose holders may wait for Python's.
std::shared_ptr<ExecGraph> WithoutGilAtEnd(std::shared_ptr<ExecGraph> graph) {
  ExecGraph* const address = graph.get();
  return {address, [graph = std::move(graph)](ExecGraph*) mutable {
            if (PyGILState_Check() == 0) return graph.reset();
            const py::gil_scoped_release no_gil;
            graph.reset();
          }};
}

std::shared_ptr<ExecGraph> CapturePython(const py::object& fn, const Tensors& inputs,
                                         std::vector<std::pair<std::string, at::Tensor>> state,
                                         std::vector<std::string> argument_names, CaptureOptions options) {
  Callable callable = ToCallable(fn);
  const py::gil_scoped_release no_gil;
  options.state = std::move(state);
  options.argument_names = std::move(argument_names);
  return WithoutGilAtEnd(Capture(std::move(callable), inputs, std::move(options)));
}

// A replay that takes the tensors out of the list, so that nobody holds them for Python. If it does not begin, they are
// put back.
Tensors Consume(ExecGraph& graph, py::list list) {
  auto inputs = list.cast<Tensors>();
  list.attr("clear")();
  try {
    const py::gil_scoped_release no_gil;
    return graph.Replay(std::move(inputs));
  } catch (...) {
    for (const at::Tensor& each : inputs) list.append(each);
    throw;
  }
}

// Lets Python's garbage collector look into a StateWatch.
void MakeCollectable(PyHeapTypeObject* heap_type) {
  PyTypeObject& type = heap_type->ht_type;
  type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return py::detail::is_holder_constructed(self) ? py::cast<StateWatch&>(py::handle(self)).Traverse(visit, arg) : 0;
  };
  type.tp_clear = [](PyObject* self) {
    if (py::detail::is_holder_constructed(self)) py::cast<StateWatch&>(py::handle(self)).Clear();
    return 0;
  };
}

// The key of a call, its tensors, and the objects that it is only good with.
py::tuple KeyOf(const std::shared_ptr<CallRules>& rules, const py::tuple& args, const py::dict& kwargs) {
  py::list tensors, objects;
  CallKey key(rules, args, kwargs, tensors, objects);
  return py::make_tuple(std::move(key), std::move(tensors), std::move(objects));
}

// Plans that a file keeps. `path`: UTF-8.
void BindSavedPlans(py::module& m) {
  py::class_<SavedPlan, std::shared_ptr<SavedPlan>>(m, "SavedPlan");
  py::class_<SavedPlans>(m, "SavedPlans")
      .def(py::init<>())
      .def(py::init<const SavedPlans&>())
      .def_static("read", &SavedPlans::Read, py::arg("path"), py::arg("state"),
                  py::call_guard<py::gil_scoped_release>())
      .def("write", &SavedPlans::Write, py::arg("path"), py::arg("state"), py::call_guard<py::gil_scoped_release>())
      .def("put",
           [](SavedPlans& plans, const CallKey& key, const ExecGraph& graph) {
             plans.Put(key.ToText(), key.tensors().Portable(), std::make_shared<SavedPlan>(graph.Save()));
           })
      .def("find",
           [](const SavedPlans& plans, const CallKey& key) {
             return std::const_pointer_cast<SavedPlan>(
                 plans.Find(key.ToText(), key.tensors()));  // pybind11 holds no const
           })
      .def("__len__", [](const SavedPlans& plans) { return plans.entries().size(); });
}

// Each error type of livepool/base/error.h as a Python exception; most derived first.
void RegisterErrors(py::module& m) {
  static py::exception<Error> base(m, "Error", PyExc_RuntimeError);
  static py::exception<InvalidInput> invalid_input(m, "InvalidInput", base);
  static py::exception<InvalidPlan> invalid_plan(m, "InvalidPlan", base);
  static py::exception<PlansRefused> plans_refused(m, "PlansRefused", base);
  static py::exception<ArenaInUse> arena_in_use(m, "ArenaInUse", base);
  static py::exception<CaptureRefused> capture_refused(m, "CaptureRefused", base);
  static py::exception<CaptureDisturbed> capture_disturbed(m, "CaptureDisturbed", capture_refused);
  static py::exception<ReplayMismatch> replay_mismatch(m, "ReplayMismatch", base);
  static py::exception<GuardFailed> guard_failed(m, "GuardFailed", base);
  static py::exception<CheckFailed> check_failed(m, "CheckFailed", base);
  static py::exception<NotInstalled> not_installed(m, "NotInstalled", base);
  static py::exception<UnsupportedTorch> unsupported_torch(m, "UnsupportedTorch", base);
  py::register_exception_translator([](std::exception_ptr pointer) {
    const auto set = [](const py::handle& type, const std::exception& error) {
      PyErr_SetString(type.ptr(), error.what());
    };
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const InvalidInput& error) {
      set(invalid_input, error);
    } catch (const InvalidPlan& error) {
      set(invalid_plan, error);
    } catch (const PlansRefused& error) {
      set(plans_refused, error);
    } catch (const ArenaInUse& error) {
      set(arena_in_use, error);
    } catch (const CaptureDisturbed& error) {
      set(capture_disturbed, error);
    } catch (const CaptureRefused& error) {
      set(capture_refused, error);
    } catch (const ReplayMismatch& error) {
      set(replay_mismatch, error);
    } catch (const GuardFailed& error) {
      set(guard_failed, error);
    } catch (const CheckFailed& error) {
      set(check_failed, error);
    } catch (const NotInstalled& error) {
      set(not_installed, error);
    } catch (const UnsupportedTorch& error) {
      set(unsupported_torch, error);
    } catch (const Error& error) {
      set(base, error);
    } catch (const c10::Error&) {
      torch::translate_exception_to_python(pointer);  // torch's own type, torch.OutOfMemoryError for one
    }
  });
}

}  // namespace

PYBIND11_MODULE(_livepool, m) {
  RegisterErrors(m);
  m.def("install", [](const std::string& device) { Install(KindOf(device)); });
  m.def("installed", [](const std::string& device) { return Installed(KindOf(device)); });
  m.def("stats", &Stats);
  m.def("trim", &TrimArenas, py::call_guard<py::gil_scoped_release>());
  m.def("set_memory_limit", &SetMemoryLimit, py::call_guard<py::gil_scoped_release>());
  m.def("memory_limit", &MemoryLimitBytes);
  m.def("parse_bytes", [](const std::string& text) { return ParseBytes(text); });
  m.def("refuse_capture", [](const std::string& reason) { return RefuseCurrentCapture(reason); });
  py::enum_<CaptureOptions::Mode>(m, "Mode")
      .value("replay", CaptureOptions::Mode::kReplay)
      .value("graph", CaptureOptions::Mode::kGraph)
      .value("rehearsal", CaptureOptions::Mode::kRehearsal);
  py::class_<CaptureOptions>(m, "CaptureOptions")
      .def(py::init<>())
      .def_readwrite("in_place", &CaptureOptions::in_place)
      .def_readwrite("fold_constants", &CaptureOptions::fold_constants)
      .def_readwrite("order_for_memory", &CaptureOptions::order_for_memory)
      .def_readwrite("search_in_background", &CaptureOptions::search_in_background)
      .def_readwrite("mode", &CaptureOptions::mode)
      .def_readwrite("outputs_in_arena", &CaptureOptions::outputs_in_arena)
      .def("with_plan", [](CaptureOptions options, std::shared_ptr<SavedPlan> plan) {
        options.plan = std::move(plan);
        return options;
      });
  BindSavedPlans(m);
  m.def("capture", &CapturePython, py::arg("fn"), py::arg("inputs"), py::arg("state"), py::arg("argument_names"),
        py::arg("options"));
  m.def("enabled", [] { return GetEnv().enabled; });
  m.def("log_level", [] { return static_cast<int>(GetEnv().log); });
  py::class_<CallRules, std::shared_ptr<CallRules>>(m, "CallRules")
      .def(
          py::init([](py::dict nodes, py::object is_constant, py::object same_leaf, py::object is_plain,
                      py::object dataclass_fields) {
            return std::make_shared<CallRules>(CallRules{std::move(nodes), std::move(is_constant), std::move(same_leaf),
                                                         std::move(is_plain), std::move(dataclass_fields)});
          }),
          py::arg("nodes"), py::arg("is_constant"), py::arg("same_leaf"), py::arg("is_plain"),
          py::arg("dataclass_fields"))
      .def("key", &KeyOf);
  py::class_<CallKey>(m, "CallKey")
      .def("__hash__", &CallKey::Hash)
      .def("__eq__", &CallKey::Equals)
      .def("__str__", &CallKey::ToText);
  m.def("scope_stats", &AllScopeStats);
  m.def("scope_stats_of", [](const std::string& name) { return ToDict(StatsOfScope(name)); });
  m.def("serve_eager_code", &ServeEagerCode);
  m.def("wait_for_plans", &WaitForPlans, py::call_guard<py::gil_scoped_release>());
  py::class_<PassScope>(m, "PassScope").def(py::init<const std::string&>()).def("end", &PassScope::End);
  py::class_<StateWatch>(m, "StateWatch", py::custom_type_setup(&MakeCollectable))
      .def(py::init<py::object>(), py::arg("same"))
      .def("add_place", &StateWatch::AddPlace)
      .def("add_size", &StateWatch::AddSize)
      .def("forget", &StateWatch::Forget)
      .def("change", &StateWatch::Change);
  py::class_<ExecGraph, std::shared_ptr<ExecGraph>>(m, "ExecGraph")
      .def("replay", py::overload_cast<const Tensors&>(&ExecGraph::Replay), py::call_guard<py::gil_scoped_release>())
      .def("consume", &Consume)
      .def("unconditional", &ExecGraph::Unconditional)
      .def("disposable", &ExecGraph::Disposable)
      .def("writes", &ExecGraph::Writes)
      .def("report", [](const ExecGraph& graph) { return ToDict(graph.Report()); });
#ifdef LIVEPOOL_HAVE_CUDA
  m.attr("has_cuda") = true;
  m.def("cuda_allocator", &SharedCudaAllocator);
#else
  m.attr("has_cuda") = false;
#endif
}

}  // namespace livepool
