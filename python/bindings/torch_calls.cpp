// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "torch_calls.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "call_of.h"
#include "torch_tensors.h"

namespace wavejit::python {

namespace {

// Shapes that are remembered; then they are forgotten all at once. Decoding makes one for each length.
constexpr std::size_t most_shapes = 4096;
constexpr std::uintptr_t aligned = 16;
constexpr std::uintptr_t workspace_alignment = 256;

// What makes two calls the same but for addresses, as bytes.
class Key {
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

// Where in a call's arguments an address goes: a row of its kind's tensors, or of its device numbers behind them.
template <typename Arguments>
struct Place {
  using Of = Kind<Arguments>;
  std::size_t row = 0;

  static Place named(const std::string& name) {
    for (std::size_t i = 0; i < Of::tensors.size(); ++i)
      if (name == Of::tensors[i].name) return {i};
    for (std::size_t i = 0; i < Of::addresses.size(); ++i)
      if (name == Of::addresses[i].name) return {Of::tensors.size() + i};
    throw nb::type_error(("'" + name + "' is no field of this call").c_str());
  }
  void put(Arguments& arguments, std::uintptr_t address) const {
    if (row < Of::tensors.size()) {
      (arguments.*(Of::tensors[row].member)).data = pointer_at<void*>(address);
      return;
    }
    std::visit(
        [&](auto member) {
          auto& field = arguments.*member;
          field = pointer_at<std::remove_reference_t<decltype(field)>>(address);
        },
        Of::addresses[row - Of::tensors.size()].member);
  }
};

template <typename Arguments>
class TorchCalls {
 public:
  using Of = Kind<Arguments>;

  TorchCalls(std::shared_ptr<EngineHandle> engine, std::shared_ptr<TorchTensors> torch)
      : engine_(std::move(engine)), torch_(std::move(torch)) {}

  // From now on `run` knows calls of these shapes. `fields`: of the tensors, then of those among the words, in their
  // order. `outputs`: tensors as each run makes them. `workspace`: fp32 on the device, and how many bytes.
  void remember(int variant, const nb::tuple& tensors, const nb::dict& words, const Call<Arguments>& call,
                const std::vector<std::string>& fields, const std::vector<std::string>& output_fields,
                const nb::tuple& outputs, const nb::object& workspace_like, std::size_t workspace_bytes) {
    if (!find_addresses(variant, tensors, words) || addresses_.size() != fields.size()) return;
    auto made = std::make_shared<Seen>();
    Seen& seen = *made;
    seen.arguments = call.arguments();
    for (const std::string& name : fields) seen.inputs.push_back(Place<Arguments>::named(name));
    for (std::size_t i = 0; i < output_fields.size(); ++i)
      seen.outputs.push_back({Place<Arguments>::named(output_fields[i]), LikeTensor(*torch_, outputs[i].ptr())});
    if (workspace_bytes != 0) {
      const std::size_t room = workspace_bytes + workspace_alignment;
      seen.workspace.emplace_back(*torch_, workspace_like.ptr(), static_cast<std::int64_t>(room / sizeof(float)));
      seen.workspace_bytes = workspace_bytes;
    }
    if (seen_.size() >= most_shapes) seen_.clear();
    seen_.insert_or_assign(key_.bytes(), std::move(made));
  }

  // What a call of shapes that were seen writes; None: they were not, or PyTorch has no memory.
  nb::object run(std::uintptr_t stream, int variant, const nb::tuple& tensors, const nb::dict& words) {
    if (!find_addresses(variant, tensors, words)) return nb::none();
    const auto found = seen_.find(key_.bytes());
    if (found == seen_.end()) return nb::none();
    const std::shared_ptr<const Seen> kept = found->second;  // whatever making tensors calls may forget it
    const Seen& seen = *kept;
    Arguments arguments = seen.arguments;
    for (std::size_t i = 0; i < addresses_.size(); ++i) seen.inputs[i].put(arguments, addresses_[i]);
    const TorchFunctions& functions = torch_->functions();
    nb::object results = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(seen.outputs.size())));
    for (std::size_t i = 0; i < seen.outputs.size(); ++i) {
      const TorchMemory made = seen.outputs[i].like.make(functions);
      void* object = nullptr;
      if (!made || functions.to_python(made.get(), nullptr, &object) != 0) return nb::none();
      PyTuple_SetItem(results.ptr(), static_cast<Py_ssize_t>(i), static_cast<PyObject*>(object));
      seen.outputs[i].place.put(arguments, made.address());
    }
    if (seen.workspace.empty()) {
      launch(arguments, stream);
      return results;
    }
    const TorchMemory workspace = seen.workspace.front().make(functions);
    if (!workspace) return nb::none();
    if constexpr (requires { arguments.workspace; }) {
      const std::uintptr_t end = workspace.address() + workspace_alignment - 1;
      arguments.workspace = pointer_at<void*>(end - end % workspace_alignment);
      arguments.workspace_bytes = seen.workspace_bytes;
    }
    launch(arguments, stream);
    return results;
  }

 private:
  struct Output {
    Place<Arguments> place;
    LikeTensor like;
  };
  struct Seen {
    Arguments arguments{};
    std::vector<Place<Arguments>> inputs;
    std::vector<Output> outputs;
    std::vector<LikeTensor> workspace;  // one or none
    std::size_t workspace_bytes = 0;
  };

  // Fills key_ and addresses_, which belong to whoever holds Python's lock. False: there is something among the words
  // that no key has.
  bool find_addresses(int variant, const nb::tuple& tensors, const nb::dict& words) {
    key_.begin(variant);
    addresses_.clear();
    const Py_ssize_t count = PyTuple_Size(tensors.ptr());
    for (Py_ssize_t i = 0; i < count; ++i)
      if (!take(PyTuple_GetItem(tensors.ptr(), i))) return false;
    PyObject* name = nullptr;
    PyObject* value = nullptr;
    for (Py_ssize_t place = 0; PyDict_Next(words.ptr(), &place, &name, &value) != 0;) {
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
    addresses_.push_back(Key::address_of(told));
    return true;
  }
  void launch(const Arguments& arguments, std::uintptr_t stream) const {
    const Released released;
    check(Of::launch(engine_->get(), &arguments, pointer_at<ihipStream_t*>(stream)));
  }

  std::shared_ptr<EngineHandle> engine_;
  std::shared_ptr<TorchTensors> torch_;
  Key key_;
  std::vector<std::uintptr_t> addresses_;
  std::unordered_map<std::string, std::shared_ptr<const Seen>> seen_;
};

template <typename Arguments>
void bind(nb::module_& module, const char* name) {
  using C = TorchCalls<Arguments>;
  nb::class_<C>(module, name, "Calls over PyTorch's tensors, remembered by their shapes.")
      .def(nb::init<std::shared_ptr<EngineHandle>, std::shared_ptr<TorchTensors>>(), nb::arg("engine"),
           nb::arg("torch"))
      .def("remember", &C::remember, nb::arg("variant"), nb::arg("tensors"), nb::arg("words"), nb::arg("call"),
           nb::arg("fields"), nb::arg("output_fields"), nb::arg("outputs"), nb::arg("workspace_like").none(),
           nb::arg("workspace_bytes"))
      .def("run", &C::run, nb::arg("stream"), nb::arg("variant"), nb::arg("tensors"), nb::arg("words"));
}

}  // namespace

void bind_torch_calls(nb::module_& module) {
  nb::class_<TorchTensors>(module, "TorchTensors", "PyTorch's tensors, read and made without linking PyTorch.")
      .def(nb::init<nb::object>(), nb::arg("tensor_type"));
  bind<wavejit_attention_forward_arguments>(module, "TorchForwardCalls");
  bind<wavejit_attention_backward_arguments>(module, "TorchBackwardCalls");
}

}  // namespace wavejit::python
