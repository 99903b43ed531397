#include "ranked_model.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/hash.h>
#include <torch/custom_class.h>

#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace neuron {
namespace {

using Tensors = std::vector<at::Tensor>;
using NamedTensors = c10::List<c10::Dict<std::string, at::Tensor>>;
using Kept = std::tuple<at::Tensor, std::string, int64_t, int64_t>;

at::Tensor bytes_of(const std::string& text) {
  const auto size = static_cast<int64_t>(text.size());
  return at::from_blob(const_cast<char*>(text.data()), {size}, at::kByte).clone();
}

std::string digest_of(const at::Tensor& bytes) {
  const auto* data = static_cast<const char*>(bytes.data_ptr());
  return c10::sha1(std::string(data, static_cast<std::size_t>(bytes.numel()))).str();
}

c10::IValue call(const char* name, torch::jit::Stack stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack.front();
}

class RankedModel : public torch::CustomClassHolder {
 public:
  RankedModel(at::Tensor artifact, std::string description, int64_t local_ranks, int64_t ranks)
      : artifact_(artifact.contiguous()),
        description_(std::move(description)),
        local_ranks_(local_ranks),
        ranks_(ranks),
        digest_(digest_of(artifact_)) {}

  void initialize(const NamedTensors& states, const NamedTensors& weights, int64_t first_rank) {
    states_ = states.copy();
    weights_ = weights.copy();
    first_rank_ = first_rank;
    initialized_ = true;
  }

  bool is_initialized() const { return initialized_ || mocked_; }

  void set_mock_initialized(bool mocked) { mocked_ = mocked; }

  // The same inputs for all ranks; the first one's results, on the host.
  Tensors forward(const Tensors& inputs) {
    if (mocked_ && !initialized_) {
      return call("neuron_tools::example_results", {artifact_, digest_}).to<Tensors>();
    }
    return run(std::vector<Tensors>(static_cast<std::size_t>(local_ranks_), inputs), false).front();
  }

  // Inputs of each rank; the results of each, on its core.
  std::vector<Tensors> forward_ranked(const std::vector<Tensors>& inputs) { return run(inputs, true); }

  bool save_artifact(const std::string& path) const {
    return write(path, artifact_.data_ptr<uint8_t>(), static_cast<std::size_t>(artifact_.numel()));
  }

  bool save_description(const std::string& path) const {
    return write(path, description_.data(), description_.size());
  }

  Kept kept() const { return {artifact_, description_, local_ranks_, ranks_}; }

 private:
  std::vector<Tensors> run(const std::vector<Tensors>& inputs, bool on_device) {
    const auto results = call(
        "neuron_tools::run_ranks",
        {artifact_, digest_, states_, weights_, inputs, first_rank_, ranks_, on_device});
    return results.to<std::vector<Tensors>>();
  }

  static bool write(const std::string& path, const void* data, std::size_t size) {
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    file.close();  // what is still buffered may not fit
    return file.good();
  }

  at::Tensor artifact_;
  std::string description_;
  int64_t local_ranks_;
  int64_t ranks_;
  std::string digest_;
  NamedTensors states_;
  NamedTensors weights_;
  int64_t first_rank_ = 0;
  bool initialized_ = false;
  bool mocked_ = false;
};

c10::intrusive_ptr<RankedModel> restored(const Kept& kept) {
  return c10::make_intrusive<RankedModel>(
      std::get<0>(kept), std::get<1>(kept), std::get<2>(kept), std::get<3>(kept));
}

}  // namespace

void register_ranked_model() {
  using Pointer = c10::intrusive_ptr<RankedModel>;
  static const auto registered =
      torch::class_<RankedModel>("neuron", "SPMDModel")
          .def(torch::init([](const std::string& neff, const std::string& metaneff, int64_t local_ranks,
                              int64_t ranks) {
            return c10::make_intrusive<RankedModel>(bytes_of(neff), metaneff, local_ranks, ranks);
          }))
          .def("initialize", &RankedModel::initialize)
          .def("is_initialized", &RankedModel::is_initialized)
          .def("set_mock_initialized", &RankedModel::set_mock_initialized)
          .def("forward", &RankedModel::forward)
          .def("forward_ranked", &RankedModel::forward_ranked)
          .def("forward_async", &RankedModel::forward_ranked)
          .def("save_neff", &RankedModel::save_artifact)
          .def("save_metaneff", &RankedModel::save_description)
          .def_pickle(
              [](const Pointer& self) { return self->kept(); }, [](const Kept& kept) { return restored(kept); });
}

}  // namespace neuron
