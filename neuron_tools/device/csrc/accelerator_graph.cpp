// torch.accelerator.Graph on this device: hands everything on to torch.neuron.NeuronGraph.
#include "python_functions.h"

#include <ATen/core/GraphImplInterface.h>
#include <torch/csrc/Exceptions.h>

#include <memory>
#include <string>

namespace neuron {
namespace {

class AcceleratorGraph final : public at::GraphImplInterface {
 public:
  explicit AcceleratorGraph(const at::GraphImplArgs& args) {
    const auto held = PyGILState_Ensure();
    PyObject* module = PyImport_ImportModule("neuron_tools.device.api.graphs");
    graph_ = module == nullptr ? nullptr
                               : PyObject_CallMethod(module, "NeuronGraph", "O", args.keep_graph ? Py_True : Py_False);
    Py_XDECREF(module);
    release(held, graph_ != nullptr);
  }
  ~AcceleratorGraph() override {
    if (Py_IsInitialized() != 0) {
      const auto held = PyGILState_Ensure();
      Py_XDECREF(graph_);
      PyGILState_Release(held);
    }
  }
  AcceleratorGraph(const AcceleratorGraph&) = delete;
  AcceleratorGraph& operator=(const AcceleratorGraph&) = delete;

  void capture_begin(at::MempoolId_t, at::GraphCaptureMode) override {
    call("capture_begin");
  }
  void capture_end() override {
    call("capture_end");
  }
  void instantiate() override {
    call("instantiate");
  }
  void replay() override {
    call("replay");
  }
  void reset() override {
    call("reset");
  }
  at::MempoolId_t pool() const override {
    return {0, 0};
  }
  void enable_debug_mode() override {
    call("enable_debug_mode");
  }
  void debug_dump(const std::string& path) override {
    const auto held = PyGILState_Ensure();
    PyObject* result = PyObject_CallMethod(graph_, "debug_dump", "s", path.c_str());
    Py_XDECREF(result);
    release(held, result != nullptr);
  }

 private:
  void call(const char* method) {
    const auto held = PyGILState_Ensure();
    PyObject* result = PyObject_CallMethod(graph_, method, nullptr);
    Py_XDECREF(result);
    release(held, result != nullptr);
  }

  // Throws what Python raised, as it was.
  static void release(PyGILState_STATE held, bool well) {
    if (well) {
      PyGILState_Release(held);
      return;
    }
    python_error error;
    error.persist();
    PyGILState_Release(held);
    throw error;
  }

  PyObject* graph_ = nullptr;
};

std::unique_ptr<at::GraphImplInterface> make_graph(at::GraphImplArgs args) {
  return std::make_unique<AcceleratorGraph>(args);
}

PyObject* register_graphs(PyObject*, PyObject*) {
  return guarded([] {
    const auto name = c10::DeviceTypeName(c10::DeviceType::PrivateUse1, /*lower_case=*/false);
    if (!at::GraphImplRegistry()->Has(name)) {
      at::GraphImplRegistry()->Register(name, &make_graph);
    }
    return none();
  });
}

}  // namespace

PyMethodDef graph_functions[] = {
    {"register_graphs", register_graphs, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace neuron
