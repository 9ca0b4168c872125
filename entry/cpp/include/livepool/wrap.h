// A callable or a module that captures and replays itself.
//
//   livepool::Wrapped net = livepool::Wrap(model);              // a torch::nn module holder, in eval mode
//   livepool::Tensors out = net({x});                           // as model->forward(x); no_grad or inference mode
//   std::cout << net.Explain().ToText();
//
//   livepool::WrappedScript script = livepool::Wrap(loaded);    // a torch::jit::Module
//   c10::IValue result = script({x, mask});                     // as loaded.forward({x, mask})
//
// Each signature (shapes, dtypes, devices, autocast, settings) is captured at its `capture_after`-th call and replayed
// from then on. What cannot be captured runs as it is, and one message on stderr says why; in grad mode and in training
// mode it runs as it is without a message. Several threads may call. The rules: docs/design.md, section "Wrap".
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "livepool/capture/exec_graph.h"

namespace livepool {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct WrapOptions {
  std::size_t max_graphs = 16;  // those that were used most recently are kept
  std::int64_t capture_after = 2;
  // What a plain callable owns (see CaptureOptions). A module's own tensors are found.
  NamedTensors state;
  std::string name = "callable";  // in messages
  // Of the graphs (see CaptureOptions). What a replay returns is on loan with outputs in the arena; what the callable
  // itself returns never is.
  CaptureOptions::Mode mode = CaptureOptions::Mode::kReplay;
  bool outputs_in_arena = false;
};

struct SignatureReport {
  std::string signature;
  std::string refusal;         // why it never gets a graph; empty otherwise
  std::int64_t sightings = 0;  // calls that ran as they are since it last had a graph
  std::int64_t captures = 0;
  std::int64_t given_up = 0;  // replays of this graph that did not come to their end
  std::optional<GraphReport> graph;
};

struct WrapReport {
  std::string name;
  std::vector<SignatureReport> signatures;
  std::int64_t replayed = 0;                  // calls that a graph served
  std::map<std::string, std::int64_t> as_is;  // why calls ran as they are -> how many
  std::size_t plans_loaded = 0;               // by LoadPlans
  std::string ToText() const;
};

// Inside it, on its thread, what is wrapped runs as it is.
class DisabledScope {
 public:
  DisabledScope();
  ~DisabledScope();
  DisabledScope(const DisabledScope&) = delete;
  DisabledScope& operator=(const DisabledScope&) = delete;
};

// What is wrapped: how it runs, and how it is now.
template <typename Function>
struct WrapSource {
  std::function<Function> run;
  std::function<NamedTensors()> state;  // asked for at each capture
  std::function<bool()> training;       // asked at each call
};

class WrapServer;  // entry/cpp/wrap_server.h

class Wrapped {
 public:
  // Throws InvalidInput if an option is less than 1.
  Wrapped(WrapSource<Tensors(const Tensors&)> source, const WrapOptions& options);
  // Throws what the callable throws, and nothing of livepool's own.
  Tensors operator()(const Tensors& inputs) const;
  // The same, and takes the tensors over (pass std::move(inputs)): where a replay that cannot be given up serves the
  // call, one that nobody else holds is freed after the last op that uses it. What fails inside that replay is the
  // caller's.
  Tensors Consume(Tensors inputs) const;
  WrapReport Explain() const;

  // Writes the plans of all signatures that have a graph, and of those that were loaded, to a file; returns how many.
  // Throws InvalidInput if there are none, or if the file cannot be written; what was there is then still there.
  std::size_t SavePlans(const std::string& path) const;
  // Takes the plans that SavePlans has written, in this process or another one: a signature with a plan is captured at
  // its first call, in the plan's memory. What was loaded before is forgotten. Returns how many there are. Throws
  // InvalidInput if it cannot be read or is damaged, InvalidPlan if a plan in it is wrong, PlansRefused if it is not
  // for this module (its parameters and buffers), this torch or this livepool.
  std::size_t LoadPlans(const std::string& path) const;

 private:
  Tensors Call(Tensors inputs, bool given) const;

  std::shared_ptr<WrapServer> server_;  // copies share their graphs
  std::shared_ptr<const WrapSource<Tensors(const Tensors&)>> source_;
};

// Of a function of TorchScript values: tensors in tuples, lists and dicts; other values are part of the signature.
class WrappedScript {
 public:
  WrappedScript(WrapSource<c10::IValue(std::vector<c10::IValue>)> source, const WrapOptions& options);
  c10::IValue operator()(std::vector<c10::IValue> inputs) const;
  // See Wrapped::Consume.
  c10::IValue Consume(std::vector<c10::IValue> inputs) const;
  WrapReport Explain() const;
  std::size_t SavePlans(const std::string& path) const;  // as of Wrapped
  std::size_t LoadPlans(const std::string& path) const;

 private:
  c10::IValue Call(std::vector<c10::IValue> inputs, bool given) const;

  std::shared_ptr<WrapServer> server_;
  std::shared_ptr<const WrapSource<c10::IValue(std::vector<c10::IValue>)>> source_;
};

namespace detail {

inline void Append(Tensors& flat, const at::Tensor& tensor) { flat.push_back(tensor); }
inline void Append(Tensors& flat, const Tensors& tensors) { flat.insert(flat.end(), tensors.begin(), tensors.end()); }
template <typename... Parts>
void Append(Tensors& flat, const std::tuple<Parts...>& parts) {
  std::apply([&](const auto&... part) { (Append(flat, part), ...); }, parts);
}

template <typename Holder, std::size_t... I>
bool TryForward(Holder& module, const Tensors& in, Tensors& out, std::index_sequence<I...>) {
  if constexpr (requires { Append(out, module->forward(in[I]...)); }) {
    if (in.size() != sizeof...(I)) return false;
    Append(out, module->forward(in[I]...));
    return true;
  }
  return false;
}

template <typename Holder, std::size_t... Arity>
Tensors Forward(Holder& module, const Tensors& in, std::index_sequence<Arity...>) {
  Tensors out;
  if (!(TryForward(module, in, out, std::make_index_sequence<Arity>()) || ...)) {
    throw InvalidInput("forward() of this module does not take " + std::to_string(in.size()) +
                       " tensors; wrap a callable that calls it");
  }
  return out;
}

inline constexpr std::size_t kMostInputs = 8;

template <typename T>
concept ModuleHolder = requires(const T& module) {
  module->is_training();
  module->named_parameters();
};
template <typename T>
concept ScriptModule = requires(T module) {
  module.is_training();
  module.get_method("forward");
};

}  // namespace detail

// A function of tensors that owns nothing but options.state. (A module holder would convert to Callable, too.)
template <typename Function>
  requires(!detail::ModuleHolder<Function> && !detail::ScriptModule<Function>)
Wrapped Wrap(Function function, const WrapOptions& options = {}) {
  Callable fn = std::move(function);
  return Wrapped(
      {.run = std::move(fn), .state = [state = options.state] { return state; }, .training = [] { return false; }},
      options);
}

// A torch::nn module holder whose forward() takes up to 8 tensors and returns tensors (in tuples or vectors: they
// come out in one row).
template <detail::ModuleHolder Holder>
Wrapped Wrap(Holder module, WrapOptions options = {}) {
  if (options.name == WrapOptions().name) options.name = module->name();
  return Wrapped({.run =
                      [module](const Tensors& in) mutable {
                        return detail::Forward(module, in, std::make_index_sequence<detail::kMostInputs + 1>());
                      },
                  .state = [module] { return StateOf(*module); },
                  .training = [module] { return IsTraining(*module); }},
                 options);
}

// A torch::jit::Module. TorchScript's fusers must be off: torch::jit::setTensorExprFuserEnabled(false).
template <detail::ScriptModule Script>
WrappedScript Wrap(Script module, WrapOptions options = {}) {
  if (options.name == WrapOptions().name) options.name = module.type()->name()->name();
  return WrappedScript({.run = [module](std::vector<c10::IValue> in) mutable { return module.forward(std::move(in)); },
                        .state = [module] { return StateOf(module); },
                        .training = [module] { return IsTraining(module); }},
                       options);
}

}  // namespace livepool
