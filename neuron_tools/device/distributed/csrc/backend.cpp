// A c10d back end whose operations are done by a Python object: PyTorch has trampolines for a Python ProcessGroup only,
// and those leave out half of the operations that DDP, FSDP and the functional collectives call from C++.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <string>
#include <utility>
#include <vector>

namespace neuron {
namespace {

using c10::intrusive_ptr;
using c10::ivalue::Future;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

// The future of one operation, completed from Python. Its value is the operation's outputs: a list, or a list of
// lists of equal length where a process brought several tensors.
class Completion : public torch::CustomClassHolder {
 public:
  Completion(Tensors outputs, std::vector<c10::Device> devices, size_t lists)
      : outputs_(std::move(outputs)),
        lists_(lists),
        future_(c10::make_intrusive<Future>(type_of(lists), std::move(devices))) {}

  void succeed() {
    if (lists_ <= 1) {
      future_->markCompleted(c10::IValue(outputs_));
      return;
    }
    const auto length = static_cast<std::ptrdiff_t>(outputs_.size() / lists_);
    TensorLists parts;
    for (auto first = outputs_.begin(); parts.size() < lists_; first += length) {
      parts.emplace_back(first, first + length);
    }
    future_->markCompleted(c10::IValue(parts));
  }
  void fail(const std::string& message) {
    future_->setErrorIfNeeded(std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__}, message)));
  }
  // Lets the current stream wait for the end; throws where the operation failed.
  void wait() {
    future_->waitAndThrow();
  }
  bool is_completed() const {
    return future_->completed();
  }
  bool is_success() const {
    return future_->completed() && !future_->hasError();
  }
  std::exception_ptr exception() const {
    return future_->exception_ptr();
  }
  const Tensors& outputs() const {
    return outputs_;
  }
  const intrusive_ptr<Future>& future() const {
    return future_;
  }

 private:
  static c10::TypePtr type_of(size_t lists) {
    const c10::TypePtr list = c10::ListType::create(c10::TensorType::get());
    return lists <= 1 ? list : c10::TypePtr(c10::ListType::create(list));
  }

  Tensors outputs_;
  size_t lists_;
  intrusive_ptr<Future> future_;
};

// Calls Python from any thread; what it raises becomes an error that C++ and Python callers both understand.
template <class Body>
auto with_python(Body body) {
  py::gil_scoped_acquire gil;
  try {
    return body();
  } catch (py::error_already_set& error) {
    const std::string message = py::str(error.value());
    if (error.matches(PyExc_RuntimeError) || error.matches(PyExc_NotImplementedError)) {
      C10_THROW_ERROR(DistBackendError, message);
    }
    throw;
  }
}

class DelegatedWork final : public c10d::Work {
 public:
  explicit DelegatedWork(py::object operation) : operation_(std::move(operation)) {
    completion_ = operation_.attr("completion").cast<intrusive_ptr<Completion>>();
  }
  ~DelegatedWork() override {
    py::gil_scoped_acquire gil;
    operation_ = py::object();
  }
  DelegatedWork(const DelegatedWork&) = delete;
  DelegatedWork& operator=(const DelegatedWork&) = delete;

  bool isCompleted() override {
    return with_python([this] { return operation_.attr("is_completed")().cast<bool>(); });
  }
  bool isSuccess() const override {
    return completion_->is_success();
  }
  std::exception_ptr exception() const override {
    return completion_->exception();
  }
  int sourceRank() const override {
    return with_python([this] { return operation_.attr("source").cast<int>(); });
  }
  std::vector<at::Tensor> result() override {
    return completion_->outputs();
  }
  void synchronize() override {
    wait(kNoTimeout);
  }
  bool wait(std::chrono::milliseconds timeout) override {
    return with_python([&] {
      operation_.attr("wait")(static_cast<double>(timeout.count()) * 1e-3);
      return true;
    });
  }
  void blockCurrentStream() override {
    wait(kNoTimeout);
  }
  void abort() override {}
  intrusive_ptr<Future> getFuture() override {
    with_python([this] {
      operation_.attr("await_values")();
      return true;
    });
    return completion_->future();
  }

 private:
  py::object operation_;
  intrusive_ptr<Completion> completion_;
};

class DelegatingBackend final : public c10d::Backend {
 public:
  DelegatingBackend(py::object delegate, int rank, int size, std::chrono::milliseconds timeout)
      : Backend(rank, size),
        delegate_(std::move(delegate)),
        options_(c10::make_intrusive<Options>("neuron", timeout)) {}
  ~DelegatingBackend() override {
    py::gil_scoped_acquire gil;
    delegate_ = py::object();
  }
  DelegatingBackend(const DelegatingBackend&) = delete;
  DelegatingBackend& operator=(const DelegatingBackend&) = delete;

  const std::string getBackendName() const override {
    return "neuron";
  }
  intrusive_ptr<Options> getBackendOptions() override {
    return options_;
  }
  bool supportsCoalescing() const override {
    return true;
  }
  void setTimeout(std::chrono::milliseconds timeout) override {
    options_->timeout = timeout;
    call("set_timeout", timeout);
  }
  void startCoalescing() override {
    call("start_coalescing");
  }
  intrusive_ptr<c10d::Work> endCoalescing() override {
    return begin("end_coalescing");
  }
  void shutdown() override {
    call("shutdown");
  }
  void abort() override {
    call("shutdown");
  }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override {
    return with_python([this] { return delegate_.attr("sequence_number")().cast<uint64_t>(); });
  }

  intrusive_ptr<c10d::Work> broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return begin("broadcast", tensors, options);
  }
  intrusive_ptr<c10d::Work> allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return begin("allreduce", tensors, options);
  }
  intrusive_ptr<c10d::Work> allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    return begin("allreduce_coalesced", tensors, static_cast<const c10d::AllreduceOptions&>(options));
  }
  intrusive_ptr<c10d::Work> reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return begin("reduce", tensors, options);
  }
// An operation with outputs, inputs and options, which the delegate knows by `name`.
#define DELEGATED(method, name, Outputs, Inputs, Options)                                                        \
  intrusive_ptr<c10d::Work> method(Outputs& outputs, Inputs& inputs, const c10d::Options& options) override {     \
    return begin(#name, outputs, inputs, options);                                                               \
  }
  DELEGATED(allgather, allgather, TensorLists, Tensors, AllgatherOptions)
  DELEGATED(_allgather_base, allgather_base, at::Tensor, at::Tensor, AllgatherOptions)
  DELEGATED(allgather_coalesced, allgather_coalesced, TensorLists, Tensors, AllgatherOptions)
  DELEGATED(allgather_into_tensor_coalesced, allgather_into_tensor_coalesced, Tensors, Tensors, AllgatherOptions)
  DELEGATED(gather, gather, TensorLists, Tensors, GatherOptions)
  DELEGATED(scatter, scatter, Tensors, TensorLists, ScatterOptions)
  DELEGATED(reduce_scatter, reduce_scatter, Tensors, TensorLists, ReduceScatterOptions)
  DELEGATED(_reduce_scatter_base, reduce_scatter_base, at::Tensor, at::Tensor, ReduceScatterOptions)
  DELEGATED(reduce_scatter_tensor_coalesced, reduce_scatter_tensor_coalesced, Tensors, Tensors, ReduceScatterOptions)
  DELEGATED(alltoall, alltoall, Tensors, Tensors, AllToAllOptions)
#undef DELEGATED
  intrusive_ptr<c10d::Work> alltoall_base(
      at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes, std::vector<int64_t>& input_sizes,
      const c10d::AllToAllOptions& options) override {
    return begin("alltoall_base", output, input, output_sizes, input_sizes, options);
  }
  intrusive_ptr<c10d::Work> send(Tensors& tensors, int peer, int tag) override {
    return begin("send", tensors, peer, tag);
  }
  intrusive_ptr<c10d::Work> recv(Tensors& tensors, int peer, int tag) override {
    return begin("recv", tensors, peer, tag);
  }
  intrusive_ptr<c10d::Work> recvAnysource(Tensors& tensors, int tag) override {
    return begin("recv_anysource", tensors, tag);
  }
  intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override {
    return begin("barrier", options);
  }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override {
    call("monitored_barrier", options, wait_all_ranks);
  }

 private:
  template <class... Arguments>
  void call(const char* name, const Arguments&... arguments) {
    with_python([&] {
      delegate_.attr(name)(arguments...);
      return true;
    });
  }
  template <class... Arguments>
  intrusive_ptr<c10d::Work> begin(const char* name, const Arguments&... arguments) {
    return with_python([&]() -> intrusive_ptr<c10d::Work> {
      return c10::make_intrusive<DelegatedWork>(delegate_.attr(name)(arguments...));
    });
  }

  py::object delegate_;
  intrusive_ptr<Options> options_;
};

// What DistributedDataParallel measures its own steps with, in wall time: it knows timers of CPU and CUDA only.
class StepTimer final : public c10d::Timer {
 public:
  explicit StepTimer(c10::Device) {}
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const int64_t from = getTimeRef(start), to = getTimeRef(end);
    return from == c10d::kUnsetTime || to < from ? std::nullopt : std::optional<int64_t>(to - from);
  }
};

// A CPU tensor over the host memory of a neuron tensor, which it keeps alive.
at::Tensor host_alias(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) {
    return tensor;
  }
  const auto keep = tensor.storage();
  auto* start = static_cast<char*>(keep.mutable_data()) + tensor.storage_offset() * tensor.itemsize();
  return at::from_blob(
      start, tensor.sizes(), tensor.strides(), [keep](void*) {}, tensor.options().device(c10::kCPU).requires_grad(false));
}

// The factor of a PREMUL_SUM, a number or a tensor; None for other operations.
py::object premultiplier(const c10d::ReduceOp& operation) {
  if (operation.op_ != c10d::ReduceOp::PREMUL_SUM || !operation.supplement_) {
    return py::none();
  }
  const auto* factor = static_cast<c10d::PreMulSumSupplement*>(operation.supplement_.get());
  return factor->tensor_factor.defined() ? py::cast(factor->tensor_factor) : py::cast(factor->double_factor);
}

}  // namespace
}  // namespace neuron

namespace c10d {
namespace {

C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kPrivateUse1, neuron::StepTimer);

}  // namespace
}  // namespace c10d

PYBIND11_MODULE(_neuron_distributed, module) {
  using namespace neuron;
  py::module_::import("torch._C._distributed_c10d");
  py::class_<Completion, c10::intrusive_ptr<Completion>>(module, "Completion")
      .def(
          py::init<Tensors, std::vector<c10::Device>, size_t>(), py::arg("outputs"), py::arg("devices"),
          py::arg("lists") = 1)
      .def("succeed", &Completion::succeed, py::call_guard<py::gil_scoped_release>())
      .def("fail", &Completion::fail, py::arg("message"), py::call_guard<py::gil_scoped_release>())
      .def("wait", &Completion::wait, py::call_guard<py::gil_scoped_release>())
      .def("is_completed", &Completion::is_completed);
  py::class_<DelegatingBackend, c10d::Backend, c10::intrusive_ptr<DelegatingBackend>>(module, "DelegatingBackend")
      .def(
          py::init<py::object, int, int, std::chrono::milliseconds>(), py::arg("delegate"), py::arg("rank"),
          py::arg("size"), py::arg("timeout"));
  module.def("host_alias", &host_alias, py::arg("tensor"));
  module.def("premultiplier", &premultiplier, py::arg("operation"));
}
