#include "livepool/wrap.h"

#include "ivalue_structure.h"
#include "wrap_server.h"

namespace livepool {
namespace {

using ScriptSource = WrapSource<c10::IValue(std::vector<c10::IValue>)>;
using TensorSource = WrapSource<Tensors(const Tensors&)>;

class TensorCall final : public FlatCall {
 public:
  explicit TensorCall(std::shared_ptr<const TensorSource> source) : source_(std::move(source)) {}
  Tensors FlatResult() override { return result_; }
  Tensors RunAgain(const Tensors& inputs) override { return source_->run(inputs); }
  Tensors Take(std::optional<Tensors> replayed) { return replayed ? *std::move(replayed) : std::exchange(result_, {}); }

 private:
  void First(const Tensors& inputs) override { result_ = source_->run(inputs); }

  const std::shared_ptr<const TensorSource> source_;
  Tensors result_;
};

class ScriptCall final : public FlatCall {
 public:
  // `inputs`: the caller's own containers, which the module may keep; without them others are made.
  ScriptCall(std::shared_ptr<const ScriptSource> source, IValueStructure arguments,
             std::optional<std::vector<c10::IValue>> inputs)
      : source_(std::move(source)), arguments_(std::move(arguments)), inputs_(std::move(inputs)) {}

  Tensors FlatResult() override {
    Tensors tensors;
    structure_.emplace(std::vector{result_}, tensors);
    return tensors;
  }

  Tensors RunAgain(const Tensors& inputs) override {
    Tensors tensors;
    const IValueStructure now({source_->run(arguments_.Rebuild(inputs))}, tensors);
    if (now.text() == structure_->text()) return tensors;
    throw CheckFailed("the result is " + now.text() + ", and was " + structure_->text() +
                      " at the capture; capture it for this case too");
  }

  c10::IValue Take(const std::optional<Tensors>& replayed) {
    return replayed ? structure_->Rebuild(*replayed)[0] : std::exchange(result_, {});
  }

 private:
  void First(const Tensors& inputs) override {
    result_ = source_->run(inputs_ ? *std::exchange(inputs_, {}) : arguments_.Rebuild(inputs));
  }

  const std::shared_ptr<const ScriptSource> source_;
  const IValueStructure arguments_;
  std::optional<std::vector<c10::IValue>> inputs_;
  c10::IValue result_;
  std::optional<IValueStructure> structure_;  // of the result, if a graph was tried
};

}  // namespace

Wrapped::Wrapped(TensorSource source, const WrapOptions& options)
    : server_(std::make_shared<WrapServer>(options)), source_(std::make_shared<TensorSource>(std::move(source))) {}

Tensors Wrapped::operator()(const Tensors& inputs) const { return Call(inputs, /*given=*/false); }
Tensors Wrapped::Consume(Tensors inputs) const { return Call(std::move(inputs), /*given=*/true); }

Tensors Wrapped::Call(Tensors inputs, bool given) const {
  WrapServer::Done done = server_->Call(
      "", std::move(inputs), given, source_->training(), [this] { return std::make_shared<TensorCall>(source_); },
      source_->state);
  return static_cast<TensorCall&>(*done.call).Take(std::move(done.replayed));
}

WrapReport Wrapped::Explain() const { return server_->Explain(); }
std::size_t Wrapped::SavePlans(const std::string& path) const { return server_->SavePlans(path, source_->state()); }
std::size_t Wrapped::LoadPlans(const std::string& path) const { return server_->LoadPlans(path, source_->state()); }

WrappedScript::WrappedScript(ScriptSource source, const WrapOptions& options)
    : server_(std::make_shared<WrapServer>(options)), source_(std::make_shared<ScriptSource>(std::move(source))) {}

c10::IValue WrappedScript::operator()(std::vector<c10::IValue> inputs) const {
  return Call(std::move(inputs), /*given=*/false);
}
c10::IValue WrappedScript::Consume(std::vector<c10::IValue> inputs) const {
  return Call(std::move(inputs), /*given=*/true);
}

c10::IValue WrappedScript::Call(std::vector<c10::IValue> inputs, bool given) const {
  Tensors tensors;
  std::optional<IValueStructure> structure;
  try {
    structure.emplace(inputs, tensors);
  } catch (const CaptureRefused& refusal) {
    server_->NoteRefused(refusal.what());
  }
  if (!structure) return source_->run(std::move(inputs));
  std::optional<std::vector<c10::IValue>> containers;
  if (!given) containers = std::move(inputs);
  inputs.clear();
  const WrapServer::Done done = server_->Call(
      structure->text(), std::move(tensors), given, source_->training(),
      [&] { return std::make_shared<ScriptCall>(source_, *structure, containers); }, source_->state);
  return static_cast<ScriptCall&>(*done.call).Take(done.replayed);
}

WrapReport WrappedScript::Explain() const { return server_->Explain(); }
std::size_t WrappedScript::SavePlans(const std::string& path) const {
  return server_->SavePlans(path, source_->state());
}
std::size_t WrappedScript::LoadPlans(const std::string& path) const {
  return server_->LoadPlans(path, source_->state());
}

}  // namespace livepool
