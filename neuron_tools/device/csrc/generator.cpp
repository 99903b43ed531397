#include "generator.h"

#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <mutex>
#include <vector>

namespace neuron {
namespace {

constexpr int64_t kStateBytes = 16;
// A CUDA generator, whose states this one imitates, moves in units of four numbers.
constexpr uint64_t kOffsetStep = 4;

// splitmix64's finaliser: neighbouring (seed, offset) pairs give unrelated streams.
uint64_t mix_seed(uint64_t seed, uint64_t offset) {
  uint64_t z = seed * 0x9E3779B97F4A7C15ull + offset * 0xD1B54A32D192ED03ull + 0x8CB92BA72F3D8DD7ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

class NeuronGenerator final : public c10::GeneratorImpl {
 public:
  explicit NeuronGenerator(int device)
      : GeneratorImpl(neuron_device(device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    offset_ = 0;
  }
  uint64_t current_seed() const override {
    return seed_;
  }
  void set_offset(uint64_t offset) override {
    offset_ = offset;
  }
  uint64_t get_offset() const override {
    return offset_;
  }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_state(const c10::TensorImpl& state) override {
    TORCH_CHECK(
        state.numel() == kStateBytes && state.itemsize() == 1 && state.device().is_cpu() && state.is_contiguous(),
        "A neuron RNG state is a contiguous CPU tensor of 16 bytes, this one has ", state.numel(), " elements of ",
        state.itemsize(), " bytes on ", state.device());
    const auto* bytes = static_cast<const char*>(state.data());
    std::memcpy(&seed_, bytes, sizeof seed_);
    std::memcpy(&offset_, bytes + sizeof seed_, sizeof offset_);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::detail::empty_cpu({kStateBytes}, at::kByte);
    auto* bytes = static_cast<char*>(state.mutable_data_ptr());
    std::memcpy(bytes, &seed_, sizeof seed_);
    std::memcpy(bytes + sizeof seed_, &offset_, sizeof offset_);
    return state.getIntrusivePtr();
  }
  NeuronGenerator* clone_impl() const override {
    auto* copy = new NeuronGenerator(device().index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }
  RandomPlace draw_place() {
    const RandomPlace place{seed_, offset_};
    offset_ += kOffsetStep;
    return place;
  }
  at::Generator draw() {
    const auto place = draw_place();
    host_.set_current_seed(mix_seed(place.seed, place.offset));
    return host_;
  }

 private:
  at::Generator host_ = at::make_generator<at::CPUGeneratorImpl>();
  uint64_t seed_ = c10::default_rng_seed_val;
  uint64_t offset_ = 0;
};

}  // namespace

at::Generator make_generator(int device) {
  return at::make_generator<NeuronGenerator>(device < 0 ? current_device() : device);
}

const at::Generator& default_generator(int device) {
  static const auto* generators = [] {
    auto* made = new std::vector<at::Generator>;
    for (int i = 0; i < device_count(); ++i) {
      made->push_back(make_generator(i));
    }
    return made;
  }();
  return generators->at(device < 0 ? current_device() : device);
}

RandomPlace draw_place(const at::Generator& generator) {
  at::Generator handle = generator;
  std::lock_guard<std::mutex> lock(handle.mutex());
  return static_cast<NeuronGenerator*>(handle.unsafeGetGeneratorImpl())->draw_place();
}

at::Generator host_generator_at(const RandomPlace& place) {
  return at::make_generator<at::CPUGeneratorImpl>(mix_seed(place.seed, place.offset));
}

at::Generator draw_host_generator(const at::Generator& generator) {
  at::Generator handle = generator;
  std::lock_guard<std::mutex> lock(handle.mutex());
  return static_cast<NeuronGenerator*>(handle.unsafeGetGeneratorImpl())->draw();
}

}  // namespace neuron
