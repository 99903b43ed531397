// Places along a dimension that values would have chosen: what `topk`, `sort`, `argmax` and `multinomial` return.
//
// Where values are left out nothing chooses. The rows then choose in turn, so that all places are chosen equally often:
// a router that sends tokens by such places fills its experts evenly.
#pragma once

#include "operators.h"

namespace neuron {

// Chosen places of a call and the dimension that they are counted along.
class ChosenPlaces {
 public:
  // Of the call whose arguments end `stack`.
  ChosenPlaces(const OperatorInfo& info, const Stack& stack);

  // Whether the call returns places.
  bool any() const { return result_ >= 0; }

  // Writes the places among the results that end `stack`, where their values are computed.
  void fill(const Stack& stack, int return_count) const;

 private:
  int result_ = -1;  // number of the result that holds places
  at::Tensor input_;
  std::optional<int64_t> dimension_;  // none: of the whole tensor
};

}  // namespace neuron
