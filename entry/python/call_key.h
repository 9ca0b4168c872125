// A call from Python as a key: what it must have in common with another call to be served by the same graph.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "livepool/capture/call_signature.h"

namespace livepool {

// What the package knows about Python objects (entry/python/livepool/structure.py).
struct CallRules {
  pybind11::dict nodes;               // torch.utils._pytree.SUPPORTED_NODES
  pybind11::object is_constant;       // of a leaf: it is compared by value
  pybind11::object same_leaf;         // of two constants: their values are the same
  pybind11::object is_plain;          // of a tensor: it is no subclass
  pybind11::object dataclass_fields;  // of a leaf: the names of its fields; None if it is no dataclass
};

// The structure of (args, kwargs) in the order of torch.utils._pytree, with dataclasses as nodes and keywords sorted;
// constants by value, other objects by identity; then the tensors' signature. Neither tensors nor objects are kept
// alive: who stores a key must drop it when one of `objects` dies.
//
// This is done on every call of a wrapped module, so here and not in Python.
class CallKey {
 public:
  // Appends the tensors and the objects to the lists. Throws CaptureRefused as CallSignature::Of does.
  CallKey(std::shared_ptr<const CallRules> rules, const pybind11::tuple& args, const pybind11::dict& kwargs,
          pybind11::list& tensors, pybind11::list& objects);

  std::size_t Hash() const { return hash_; }
  bool Equals(const CallKey& other) const;
  const CallSignature& tensors() const { return *signature_; }
  // "Float[2, 8], mask=None".
  std::string ToText() const;

 private:
  enum class Kind { kTensor, kConstant, kObject, kNode };
  struct Token {
    Kind kind = Kind::kTensor;
    PyTypeObject* type = nullptr;  // of constants, objects and nodes
    PyObject* identity = nullptr;  // of an object; borrowed
    Py_ssize_t children = 0;       // of a node
    pybind11::object value;        // the constant, or what a node has beside its children (a dict's keys, …)
  };

  struct Builder;
  std::string TextOf(std::size_t& token, std::size_t& tensor, const std::vector<std::string>& tensors) const;

  std::shared_ptr<const CallRules> rules_;
  std::vector<Token> tokens_;
  std::optional<CallSignature> signature_;
  std::size_t positional_ = 0;
  std::size_t hash_ = 0;
};

}  // namespace livepool
