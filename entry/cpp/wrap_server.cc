#include "wrap_server.h"

#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "livepool/base/env.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

constexpr std::int64_t kGiveUps = 8;  // one after the other, then the graph goes

thread_local int disabled = 0;

void Print(LogLevel level, const std::string& line) {
  if (GetEnv().log >= level) std::fprintf(stderr, "livepool: %s\n", line.c_str());
}

std::string Describe(const GraphReport& report) {
  const auto ms = [](double value) {
    return std::to_string(value).substr(0, std::to_string(value).find('.') + 2) + " ms";
  };
  return std::to_string(report.ops) + " ops, " + std::to_string(report.buffers) + " buffers, bound " +
         FormatBytes(report.lower_bound_bytes) + ", arena " + FormatBytes(report.arena_bytes) + ", captured in " +
         ms(report.capture_ms) + ", planned in " + ms(report.plan_ms) + (report.as_saved ? ", plan from a file" : "");
}

// Why a call at this time, on this thread, is neither captured nor replayed, without a message; empty if it may be.
std::string WhyNever(bool training) {
  if (disabled > 0 || CaptureUnderWay()) return "a DisabledScope, or inside a capture or a check";
  if (!GetEnv().enabled) return "LIVEPOOL=0";
  if (c10::GradMode::is_enabled()) return "grad mode";
  if (training) return "training mode";
  return "";
}

std::string TextOf(const std::exception& error) {
  const auto* torchs = dynamic_cast<const c10::Error*>(&error);
  return torchs != nullptr ? torchs->what_without_backtrace() : error.what();
}

std::string WhyNoGraph(const Signature& signature) {
  return signature.refusal.empty() ? "not seen often enough yet" : signature.refusal;
}

WrapServer::Done RunNew(const Tensors& inputs, const WrapServer::MakeCall& make) {
  WrapServer::Done done{.call = make()};
  done.call->RunFirst(inputs);
  return done;
}

}  // namespace

DisabledScope::DisabledScope() { ++disabled; }
DisabledScope::~DisabledScope() { --disabled; }

WrapServer::WrapServer(const WrapOptions& options)
    : name_(options.name),
      mode_(options.mode),
      outputs_in_arena_(options.outputs_in_arena),
      cache_(options.max_graphs, options.capture_after) {
  if (options.max_graphs < 1) throw InvalidInput("max_graphs is 0; it must be at least 1");
  if (options.capture_after < 1)
    throw InvalidInput("capture_after is " + std::to_string(options.capture_after) + "; it must be at least 1");
}

WrapServer::Done WrapServer::Call(const std::string& structure, Tensors inputs, bool given, bool training,
                                  const MakeCall& make, const std::function<NamedTensors()>& state) {
  if (const std::string reason = WhyNever(training); !reason.empty()) return AsIs(reason, inputs, make);
  std::optional<CallSignature> tensors;
  std::string reason;
  try {
    tensors = CallSignature::Of(inputs);
  } catch (const CaptureRefused& refusal) {
    reason = refusal.what();
  }
  if (!tensors) {
    NoteRefused(reason);
    return RunNew(inputs, make);
  }

  const auto [signature, captured] = cache_.Find({structure, *std::move(tensors)});
  if (captured.graph) {
    given = given && captured.graph->Unconditional();
    const std::size_t count = inputs.size();
    try {
      Done done{.call = captured.call,
                .replayed = given ? captured.graph->Replay(std::move(inputs)) : captured.graph->Replay(inputs)};
      cache_.Served(*signature);
      const std::lock_guard lock(mutex_);
      ++replayed_;
      return done;
    } catch (const std::exception&) {
      const bool gone = inputs.size() != count;
      if (gone || !GiveUp(*signature, *captured.graph, reason)) throw;
    }
  }
  std::shared_ptr<const SavedPlan> plan = PlanFor(signature->key);
  if (cache_.Sight(*signature, plan != nullptr)) return CaptureCall(*signature, inputs, make, state, std::move(plan));
  return AsIs(reason.empty() ? WhyNoGraph(*signature) : reason, inputs, make);
}

void WrapServer::NoteRefused(const std::string& reason) {
  Say("runs as it is", reason, reason);
  Note(reason);
}

void WrapServer::Note(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ++as_is_[reason];
}

WrapServer::Done WrapServer::AsIs(const std::string& reason, const Tensors& inputs, const MakeCall& make) {
  Note(reason);
  return RunNew(inputs, make);
}

// The call runs once, under the recorder; its own result is returned, whether that gives a graph or not.
WrapServer::Done WrapServer::CaptureCall(Signature& signature, const Tensors& inputs, const MakeCall& make,
                                         const std::function<NamedTensors()>& state,
                                         std::shared_ptr<const SavedPlan> plan) {
  const std::shared_ptr<FlatCall> call = make();
  const Callable fn = [call](const Tensors& in) {
    const DisabledScope as_is;
    if (call->begun()) return call->RunAgain(in);
    call->RunFirst(in);
    return call->FlatResult();
  };
  const std::string text = ToText(signature.key);
  try {
    const std::shared_ptr<ExecGraph> graph = Capture(
        fn, inputs, {.state = state(), .plan = std::move(plan), .mode = mode_, .outputs_in_arena = outputs_in_arena_});
    cache_.Captured(signature, {graph, call});
    const GraphReport report = graph->Report();
    Print(LogLevel::kInfo, name_ + "(" + text + "): " + Describe(report));
    if (!report.not_as_saved.empty())
      Say("plans anew for (" + text + "), as the saved plan does not fit", report.not_as_saved, "plan of " + text);
  } catch (const std::exception& error) {
    if (call->threw()) {
      cache_.Fail(signature);
      throw;
    }
    // Of the others another attempt may succeed: out of memory, for one.
    const bool refused =
        dynamic_cast<const Error*>(&error) != nullptr && dynamic_cast<const CaptureDisturbed*>(&error) == nullptr;
    const bool deferred = refused && cache_.Defer(signature);
    if (deferred)
      Print(LogLevel::kInfo, name_ + " waits for another call with (" + text + "): " + error.what());
    else if (refused)
      cache_.Refuse(signature, error.what());
    else
      cache_.Fail(signature);
    if (!deferred)
      Say("runs as it is for (" + text + ")" + (refused ? "" : " for now"), TextOf(error),
          refused ? error.what() : "a capture failed");
  }
  if (!call->begun()) return AsIs(WhyNoGraph(signature), inputs, make);
  return {.call = call};
}

std::shared_ptr<const SavedPlan> WrapServer::PlanFor(const SignatureKey& key) const {
  std::shared_ptr<const SavedPlans> loaded;
  {
    const std::lock_guard lock(mutex_);
    loaded = loaded_;
  }
  return loaded ? loaded->Find(ToText(key), key.tensors) : nullptr;
}

// What was loaded and not yet met stays.
std::size_t WrapServer::SavePlans(const std::string& path, const NamedTensors& state) const {
  SavedPlans plans;
  {
    const std::lock_guard lock(mutex_);
    if (loaded_) plans = *loaded_;
  }
  for (const Signature& each : cache_.Snapshot()) {
    if (!each.captured.graph) continue;
    plans.Put(ToText(each.key), each.key.tensors.Portable(), std::make_shared<SavedPlan>(each.captured.graph->Save()));
  }
  plans.Write(path, state);
  return plans.entries().size();
}

std::size_t WrapServer::LoadPlans(const std::string& path, const NamedTensors& state) {
  auto plans = std::make_shared<const SavedPlans>(SavedPlans::Read(path, state));
  const std::size_t count = plans->entries().size();
  const std::lock_guard lock(mutex_);
  loaded_ = std::move(plans);
  return count;
}

bool WrapServer::GiveUp(Signature& signature, const ExecGraph& graph, std::string& reason) {
  const std::string text = ToText(signature.key);
  reason = "a replay was given up";
  try {
    throw;
  } catch (const ReplayMismatch& error) {
    Print(LogLevel::kInfo, name_ + " drops the graph for (" + text + "): " + error.what());
    cache_.Forget(signature, &graph);
  } catch (const CheckFailed& error) {
    cache_.Refuse(signature, error.what());
    Say("runs as it is for (" + text + ")", error.what(), "check of " + text);
  } catch (const GuardFailed& error) {
    Say("runs as it is for (" + text + "), where a value that it reads differs", error.what(), "guard of " + text);
  } catch (const std::exception& error) {
    if (graph.Writes()) return false;  // what it had written before the error, eager would have written too
    Say("gave up a replay for (" + text + ")", TextOf(error), "error in " + text);
  }
  if (cache_.GaveUp(signature) >= kGiveUps) cache_.Forget(signature, &graph);
  return true;
}

void WrapServer::Say(const std::string& what, const std::string& why, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!said_.insert(reason).second) return;
  }
  Print(LogLevel::kWarning, name_ + " " + what + ": " + why);
}

WrapReport WrapServer::Explain() const {
  WrapReport report{.name = name_};
  for (const Signature& each : cache_.Snapshot()) {
    SignatureReport& signature = report.signatures.emplace_back(SignatureReport{.signature = ToText(each.key),
                                                                                .refusal = each.refusal,
                                                                                .sightings = each.sightings,
                                                                                .captures = each.captures,
                                                                                .given_up = each.given_up});
    if (each.captured.graph) signature.graph = each.captured.graph->Report();
  }
  const std::lock_guard lock(mutex_);
  report.replayed = replayed_;
  report.as_is = as_is_;
  report.plans_loaded = loaded_ ? loaded_->entries().size() : 0;
  return report;
}

std::string WrapReport::ToText() const {
  std::string text = name + ": " + std::to_string(replayed) + " calls replayed\n";
  for (const SignatureReport& each : signatures) {
    text += "  (" + each.signature + ") ";
    if (each.graph) {
      text += Describe(*each.graph) + "; " + std::to_string(each.graph->replays) + " replays, " +
              std::to_string(each.given_up) + " given up, " + std::to_string(each.graph->hits) + " hits, " +
              std::to_string(each.graph->misses) + " misses\n";
    } else {
      text += each.refusal.empty() ? "seen " + std::to_string(each.sightings) + " times, no graph yet\n"
                                   : "refused: " + each.refusal + "\n";
    }
  }
  if (plans_loaded > 0) {
    const auto used = std::count_if(signatures.begin(), signatures.end(),
                                    [](const auto& each) { return each.graph && each.graph->as_saved; });
    text += "  " + std::to_string(plans_loaded) + " plans loaded from a file, " + std::to_string(used) +
            " of them in use\n";
  }
  for (const auto& [reason, count] : as_is)
    text += "  ran as it is " + std::to_string(count) + " times: " + reason + "\n";
  return text;
}

std::string ToText(const SignatureKey& key) {
  std::string text;
  for (const std::string& each : key.tensors.ToTexts()) text += (text.empty() ? "" : ", ") + each;
  return key.structure.empty() ? text : text + " in " + key.structure;
}

}  // namespace livepool
