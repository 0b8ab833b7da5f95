// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory.h"

#include <nanobind/stl/shared_ptr.h>

#include <string>
#include <utility>

#include "interpreter.h"

namespace wavejit::python {

namespace {

// Bytes of a Python object, for as long as this lives.
class HostBytes {
 public:
  HostBytes(const nb::object& host, bool writable) {
    if (PyObject_GetBuffer(host.ptr(), &view_, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)) != 0)
      nb::raise_python_error();
  }
  ~HostBytes() { PyBuffer_Release(&view_); }
  HostBytes(const HostBytes&) = delete;
  HostBytes& operator=(const HostBytes&) = delete;

  void* data() const { return view_.buf; }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

void require_inside(std::size_t offset, std::size_t size, std::size_t bytes) {
  if (offset > bytes || size > bytes - offset)
    throw Error(WAVEJIT_INVALID_ARGUMENT, ("bytes " + std::to_string(offset) + " … " + std::to_string(offset + size) +
                                           " of an allocation of " + std::to_string(bytes))
                                              .c_str());
}

}  // namespace

DeviceMemory::DeviceMemory(std::shared_ptr<EngineHandle> engine, std::size_t bytes)
    : engine_(std::move(engine)), bytes_(bytes) {
  const Released released;
  buffer_.emplace(engine_->engine(), bytes == 0 ? 1 : bytes);  // an empty array has an address, too
}

DeviceMemory::~DeviceMemory() {
  const Released released;
  buffer_.reset();
}

void DeviceMemory::copy_in(std::size_t offset, const nb::object& host) {
  const HostBytes bytes(host, false);
  require_inside(offset, bytes.size(), bytes_);
  const Released released;
  check(wavejit_device_copy_in(engine_->get(), static_cast<std::byte*>(buffer_->data()) + offset, bytes.data(),
                               bytes.size()));
}

void DeviceMemory::copy_out(std::size_t offset, const nb::object& host) const {
  const HostBytes bytes(host, true);
  require_inside(offset, bytes.size(), bytes_);
  const Released released;
  check(wavejit_device_copy_out(engine_->get(), bytes.data(), static_cast<const std::byte*>(buffer_->data()) + offset,
                                bytes.size()));
}

void bind_memory(nb::module_& module) {
  nb::class_<DeviceMemory>(module, "DeviceMemory", "Device memory of an engine. wavejit.DeviceArray is for users.")
      .def(nb::init<std::shared_ptr<EngineHandle>, std::size_t>(), nb::arg("engine"), nb::arg("bytes"))
      .def_prop_ro("address", &DeviceMemory::address)
      .def_prop_ro("bytes", &DeviceMemory::bytes)
      .def("copy_in", &DeviceMemory::copy_in, nb::arg("offset"), nb::arg("host"))
      .def("copy_out", &DeviceMemory::copy_out, nb::arg("offset"), nb::arg("host"));
}

}  // namespace wavejit::python
