// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over PyTorch's tensors, remembered by the shapes that they were made for: a call of a shape that was seen
// before makes its outputs, puts addresses into arguments that were checked, and launches.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "call_of.h"
#include "torch_tensors.h"

namespace wavejit::python {

// The most shapes that are remembered. Beyond it all of them are forgotten: decode makes a new shape for each length.
inline constexpr std::size_t most_shapes = 4096;
inline constexpr std::uintptr_t aligned = 16;
inline constexpr std::uintptr_t workspace_alignment = 256;

inline std::vector<PyObject*> objects_of(const nb::tuple& tuple) {
  std::vector<PyObject*> objects(static_cast<std::size_t>(PyTuple_Size(tuple.ptr())));
  for (std::size_t i = 0; i < objects.size(); ++i)
    objects[i] = PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(i));
  return objects;
}

// What makes two calls the same but for addresses, as bytes.
class CallKey {
 public:
  const std::string& bytes() const { return bytes_; }

  void begin(int variant) {
    bytes_.clear();
    add(variant);
  }
  void add_tensor(const DLTensor& tensor) {
    add(tensor.device);
    add(tensor.dtype);
    // Where a tensor begins decides whether a kernel may read it as it lies.
    add(static_cast<std::int32_t>(2 * tensor.ndim + (address_of(tensor) % aligned == 0 ? 1 : 0)));
    const std::size_t bytes = static_cast<std::size_t>(tensor.ndim) * sizeof(std::int64_t);
    bytes_.append(reinterpret_cast<const char*>(tensor.shape), bytes);
    bytes_.append(reinterpret_cast<const char*>(tensor.strides), bytes);
  }
  void add_name(PyObject* name) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name, &length);
    if (text == nullptr) nb::raise_python_error();
    bytes_.append(text, static_cast<std::size_t>(length) + 1);
  }
  // False: something else than None, a bool or a number.
  bool add_value(PyObject* value) {
    if (value == Py_None) {
      bytes_.push_back('n');
    } else if (value == Py_True || value == Py_False) {
      bytes_.push_back(value == Py_True ? 't' : 'f');
    } else if (PyLong_CheckExact(value)) {
      int overflow = 0;
      const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
      if (overflow != 0) return false;
      bytes_.push_back('i');
      add(number);
    } else if (PyFloat_CheckExact(value)) {
      bytes_.push_back('d');
      add(PyFloat_AsDouble(value));
    } else {
      return false;
    }
    return true;
  }

  static std::uintptr_t address_of(const DLTensor& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  }

 private:
  template <typename Number>
  void add(const Number& number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  std::string bytes_;
};

template <typename Arguments>
class TorchCalls {
 public:
  using Of = Kind<Arguments>;

  TorchCalls(std::shared_ptr<EngineHandle> engine, std::shared_ptr<TorchTensors> torch)
      : engine_(std::move(engine)), torch_(std::move(torch)) {}

  // From now on `run` knows calls of these shapes. `fields`: Python's names of the tensors, then of those among the
  // words, in their order. `outputs`: tensors as each run makes them. `before`: the value with which an output is filled
  // before the launch, if a launch may leave rows out, else none. `workspace`: fp32 on the device, and its bytes.
  void remember(int variant, const nb::tuple& tensors, const nb::dict& words, const Call<Arguments>& call,
                const nb::list& fields, const nb::list& output_fields, const nb::tuple& outputs,
                const std::vector<double>& before, const nb::object& workspace_like, std::size_t workspace_bytes) {
    if (!find_addresses(variant, objects_of(tensors), words.ptr()) || addresses_.size() != fields.size()) return;
    auto made = std::make_shared<Seen>();
    Seen& seen = *made;
    seen.arguments = call.arguments();
    for (const nb::handle name : fields) seen.inputs.push_back(&Call<Arguments>::moved_field(name.ptr()));
    for (std::size_t i = 0; i < output_fields.size(); ++i)
      seen.outputs.push_back({.field = &Call<Arguments>::moved_field(nb::handle(output_fields[i]).ptr()),
                              .like = LikeTensor(*torch_, outputs[i].ptr()),
                              .before = before.empty() ? std::nullopt : std::optional(before.at(i))});
    if (workspace_bytes != 0) {
      const std::size_t room = workspace_bytes + workspace_alignment;
      seen.workspace.emplace_back(*torch_, workspace_like.ptr(), static_cast<std::int64_t>(room / sizeof(float)));
      seen.workspace_bytes = workspace_bytes;
    }
    if (seen_.size() >= most_shapes) seen_.clear();
    seen_.insert_or_assign(key_.bytes(), std::move(made));
  }

  // The outputs of a call whose shapes were seen, after `in_front` and before `behind` None. Nothing: the shapes were
  // not seen, or PyTorch has no memory.
  nb::object run(std::uintptr_t stream, int variant, std::span<PyObject* const> tensors, PyObject* words,
                 std::size_t in_front = 0, std::size_t behind = 0) {
    if (!find_addresses(variant, tensors, words)) return {};
    const auto found = seen_.find(key_.bytes());
    if (found == seen_.end()) return {};
    const std::shared_ptr<const Seen> kept = found->second;  // whatever making tensors calls may forget it
    const Seen& seen = *kept;
    Arguments arguments = seen.arguments;
    for (std::size_t i = 0; i < addresses_.size(); ++i) put_address(&arguments, *seen.inputs[i], addresses_[i]);
    const TorchFunctions& functions = torch_->functions();
    nb::object results = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(in_front + seen.outputs.size() + behind)));
    Py_ssize_t place = 0;
    const auto add = [&](PyObject* object) { PyTuple_SetItem(results.ptr(), place++, object); };
    for (std::size_t i = 0; i < in_front; ++i) add(Py_NewRef(Py_None));
    for (const Output& output : seen.outputs) {
      const TorchMemory made = output.like.make(functions);
      void* object = nullptr;
      if (!made || !is_filled(functions, output, made)) return {};
      if (functions.to_python(made.get(), nullptr, &object) != 0) return {};
      add(static_cast<PyObject*>(object));
      put_address(&arguments, *output.field, made.address());
    }
    for (std::size_t i = 0; i < behind; ++i) add(Py_NewRef(Py_None));
    if (seen.workspace.empty()) {
      launch(arguments, stream);
      return results;
    }
    const TorchMemory workspace = seen.workspace.front().make(functions);
    if (!workspace) return {};
    if constexpr (requires { arguments.split; }) {
      const std::uintptr_t end = workspace.address() + workspace_alignment - 1;
      arguments.split.workspace = pointer_at<void*>(end - end % workspace_alignment);
      arguments.split.workspace_bytes = seen.workspace_bytes;
    }
    launch(arguments, stream);
    return results;
  }

 private:
  struct Output {
    const Field* field;
    LikeTensor like;
    std::optional<double> before;
  };
  struct Seen {
    Arguments arguments{};
    std::vector<const Field*> inputs;
    std::vector<Output> outputs;
    std::vector<LikeTensor> workspace;  // one or none
    std::size_t workspace_bytes = 0;
  };

  // False: PyTorch refuses it.
  static bool is_filled(const TorchFunctions& functions, const Output& output, const TorchMemory& made) {
    if (!output.before) return true;
    // Zeros are a memset.
    if (*output.before == 0) return functions.zero(made.get()) == 0;
    return functions.fill(made.get(), *output.before) == 0;
  }

  // Fills key_ and addresses_, which belong to whoever holds Python's lock. False: there is something among the words
  // that no key has.
  bool find_addresses(int variant, std::span<PyObject* const> tensors, PyObject* words) {
    key_.begin(variant);
    addresses_.clear();
    for (PyObject* tensor : tensors)
      if (!take(tensor)) return false;
    PyObject* name = nullptr;
    PyObject* value = nullptr;
    for (Py_ssize_t place = 0; PyDict_Next(words, &place, &name, &value) != 0;) {
      key_.add_name(name);
      if (!key_.add_value(value) && !(torch_->is_tensor(value) && take(value))) return false;
    }
    return true;
  }
  bool take(PyObject* tensor) {
    DLTensor told{.data = nullptr,
                  .device = {.device_type = kDLCPU, .device_id = 0},
                  .ndim = 0,
                  .dtype = {},
                  .shape = nullptr,
                  .strides = nullptr,
                  .byte_offset = 0};
    if (!torch_->read(tensor, told)) return false;
    key_.add_tensor(told);
    addresses_.push_back(CallKey::address_of(told));
    return true;
  }
  void launch(const Arguments& arguments, std::uintptr_t stream) const {
    const Released released;
    check(wavejit::launch(engine_->get(), arguments, pointer_at<ihipStream_t*>(stream)));
  }

  std::shared_ptr<EngineHandle> engine_;
  std::shared_ptr<TorchTensors> torch_;
  CallKey key_;
  std::vector<std::uintptr_t> addresses_;
  std::unordered_map<std::string, std::shared_ptr<const Seen>> seen_;
};

}  // namespace wavejit::python
