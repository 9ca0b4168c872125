#include "ivalue_structure.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>

#include <bit>
#include <functional>
#include <iomanip>
#include <sstream>

#include "livepool/base/error.h"

namespace livepool {
namespace {

// Stands for a tensor. An undefined one would not do: a tuple cannot tell its type then.
const at::Tensor& Blank() {
  static const at::Tensor& blank = *new at::Tensor(at::empty({0}));
  return blank;
}

// The value with change(tensor) in the place of each tensor, in order; lists and dicts are copied.
c10::IValue Map(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& each : value.toTupleRef().elements()) elements.push_back(Map(each, change));
    const auto type = value.type()->expect<c10::TupleType>();
    return type->schema() ? c10::ivalue::Tuple::createNamed(std::move(elements), type)
                          : c10::ivalue::Tuple::create(std::move(elements));
  }
  if (value.isList()) {
    c10::impl::GenericList list = value.toList().copy();
    for (std::size_t i = 0; i < list.size(); ++i) list.set(i, Map(list.get(i), change));
    return list;
  }
  if (value.isGenericDict()) {
    c10::impl::GenericDict dict = value.toGenericDict().copy();
    for (const auto& entry : value.toGenericDict()) dict.insert_or_assign(entry.key(), Map(entry.value(), change));
    return dict;
  }
  return value;
}

void Write(std::ostream& text, const c10::IValue& value) {
  const char* separator = "";
  const auto part = [&](const c10::IValue& each) {
    text << separator;
    separator = ", ";
    Write(text, each);
  };
  if (value.isTensor()) {
    text << 'T';
  } else if (value.isTuple()) {
    text << value.type()->annotation_str() << '(';
    for (const c10::IValue& each : value.toTupleRef().elements()) part(each);
    text << ')';
  } else if (value.isList()) {
    text << '[';
    for (const c10::IValue& each : value.toListRef()) part(each);
    text << ']';
  } else if (value.isGenericDict()) {
    text << '{';
    for (const auto& entry : value.toGenericDict()) {
      part(entry.key());
      text << ": ";
      Write(text, entry.value());
    }
    text << '}';
  } else if (value.isString()) {
    text << std::quoted(value.toStringRef());
  } else if (value.isDouble()) {  // as bits: NaN is the same as NaN, and -0.0 is not 0.0
    text << value.toDouble() << '#' << std::hex << std::bit_cast<std::uint64_t>(value.toDouble()) << std::dec;
  } else if (value.isNone() || value.isBool() || value.isInt() || value.isDevice()) {
    text << value;
  } else {
    throw CaptureRefused("an argument is a " + value.tagKind() + ", which is neither a tensor nor a plain value");
  }
}

}  // namespace

IValueStructure::IValueStructure(const std::vector<c10::IValue>& values, std::vector<at::Tensor>& tensors) {
  std::ostringstream text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text << ", ";
    Write(text, values[i]);
    blanks_.push_back(Map(values[i], [&](const at::Tensor& tensor) {
      tensors.push_back(tensor);
      return Blank();
    }));
  }
  text_ = text.str();
}

std::vector<c10::IValue> IValueStructure::Rebuild(const std::vector<at::Tensor>& tensors) const {
  auto next = tensors.begin();
  std::vector<c10::IValue> values;
  for (const c10::IValue& blank : blanks_) values.push_back(Map(blank, [&](const at::Tensor&) { return *next++; }));
  return values;
}

}  // namespace livepool
