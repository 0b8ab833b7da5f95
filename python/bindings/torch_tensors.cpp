// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "torch_tensors.h"

#include <dlfcn.h>

#include <string>
#include <utility>

#include "wavejit/wavejit.hpp"

namespace wavejit::python {

namespace {

// The beginning of DLPackExchangeAPI, of DLPack 1.2 and later: what its header says that it keeps.
struct Exchange {
  DLPackVersion version;
  Exchange* earlier;
  void* make;
  void* from_python;
  void* to_python;
  int (*read)(void* object, DLTensor* tensor);
};
constexpr const char* exchange_name = "dlpack_exchange_api";
constexpr const char* exchange_attribute = "__dlpack_c_exchange_api__";

[[noreturn]] void missing(const std::string& what) {
  throw Error(WAVEJIT_UNSUPPORTED, ("torch: it has no " + what + "; accepted: PyTorch 2.14 or later").c_str());
}

const Exchange* exchange_of(const nb::object& type) {
  if (!nb::hasattr(type, exchange_attribute)) missing(exchange_attribute);
  const nb::object capsule = type.attr(exchange_attribute);
  // Documents are made beside a stand-in for torch that has every attribute.
  if (PyCapsule_IsValid(capsule.ptr(), exchange_name) == 0) missing(exchange_attribute);
  const auto* exchange = static_cast<const Exchange*>(PyCapsule_GetPointer(capsule.ptr(), exchange_name));
  while (exchange != nullptr && exchange->version.major != DLPACK_MAJOR_VERSION) exchange = exchange->earlier;
  if (exchange == nullptr || exchange->read == nullptr) missing(exchange_attribute);
  return exchange;
}

// A library that is loaded already: PyTorch's own, as its modules opened it.
class Loaded {
 public:
  explicit Loaded(const char* name) : name_(name), library_(dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
    if (library_ == nullptr) missing(name_);
  }
  ~Loaded() { dlclose(library_); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  template <typename Function>
  void find(Function& function, const char* name) const {
    void* found = dlsym(library_, name);
    if (found == nullptr) missing(name);
    function = reinterpret_cast<Function>(found);
  }

 private:
  std::string name_;
  void* library_;
};

void good(int status, const char* what) {
  if (status != 0) missing(what);
}

}  // namespace

TorchTensors::TorchTensors(nb::object tensor_type) : type_(std::move(tensor_type)) {
  functions_.read = exchange_of(type_)->read;
  const Loaded torch("libtorch_cpu.so");
  torch.find(functions_.empty, "aoti_torch_empty_strided");
  torch.find(functions_.zero, "aoti_torch_zero_");
  torch.find(functions_.fill, "aoti_torch_aten_fill__Scalar");
  torch.find(functions_.drop, "aoti_torch_delete_tensor_object");
  torch.find(functions_.address, "aoti_torch_get_data_ptr");
  torch.find(functions_.dimensions, "aoti_torch_get_dim");
  torch.find(functions_.sizes, "aoti_torch_get_sizes");
  torch.find(functions_.strides, "aoti_torch_get_strides");
  torch.find(functions_.dtype, "aoti_torch_get_dtype");
  torch.find(functions_.device_type, "aoti_torch_get_device_type");
  torch.find(functions_.device, "aoti_torch_get_device_index");
  const Loaded python("libtorch_python.so");
  python.find(functions_.from_python, "torch_tensor_from_pyobject");
  python.find(functions_.to_python, "torch_tensor_to_pyobject");
}

bool TorchTensors::read(PyObject* tensor, DLTensor& told) const {
  if (functions_.read(tensor, &told) == 0) return told.strides != nullptr || told.ndim == 0;
  PyErr_Clear();
  return false;
}

std::uintptr_t TorchMemory::address() const {
  void* data = nullptr;
  good(functions_->address(tensor_, &data), "address");
  return reinterpret_cast<std::uintptr_t>(data);
}

LikeTensor::LikeTensor(const TorchTensors& torch, PyObject* tensor) {
  const TorchFunctions& functions = torch.functions();
  TorchHandle handle = nullptr;
  good(functions.from_python(tensor, &handle), "torch_tensor_from_pyobject");
  const TorchMemory kept(functions, handle);
  good(functions.dtype(handle, &dtype_), "aoti_torch_get_dtype");
  good(functions.device_type(handle, &device_type_), "aoti_torch_get_device_type");
  good(functions.device(handle, &device_), "aoti_torch_get_device_index");
  std::int64_t dimensions = 0;
  std::int64_t* sizes = nullptr;
  std::int64_t* strides = nullptr;
  good(functions.dimensions(handle, &dimensions), "aoti_torch_get_dim");
  good(functions.sizes(handle, &sizes), "aoti_torch_get_sizes");
  good(functions.strides(handle, &strides), "aoti_torch_get_strides");
  sizes_.assign(sizes, sizes + dimensions);
  strides_.assign(strides, strides + dimensions);
}

LikeTensor::LikeTensor(const TorchTensors& torch, PyObject* tensor, std::int64_t count) : LikeTensor(torch, tensor) {
  sizes_ = {count};
  strides_ = {1};
}

TorchMemory LikeTensor::make(const TorchFunctions& functions) const {
  TorchHandle made = nullptr;
  if (functions.empty(static_cast<std::int64_t>(sizes_.size()), sizes_.data(), strides_.data(), dtype_, device_type_,
                      device_, &made) != 0)
    made = nullptr;
  return {functions, made};
}

}  // namespace wavejit::python
