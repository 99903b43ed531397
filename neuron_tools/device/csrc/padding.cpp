#include "padding.h"

#include <algorithm>
#include <cstring>

namespace neuron {

namespace {

constexpr int64_t kShortest = 16;  // sequences shorter than that are not worth bucketing
constexpr int64_t kMost = 0x7fff;
constexpr int kBits = 16;

bool may_be_sequences(const at::Tensor& batch) {
  const bool ids = batch.dim() == 2 && at::isIntegralType(batch.scalar_type(), false);
  const bool features = batch.dim() == 3 && at::isFloatingType(batch.scalar_type());
  return (ids || features) && batch.device().is_cpu() && batch.is_contiguous() && batch.numel() > 0 &&
         batch.size(0) <= kMost && batch.size(1) >= kShortest && batch.size(1) <= kMost;
}

// Positions at the end of a row that are all like its last one.
int64_t equal_at_end(const char* row, int64_t length, int64_t position_bytes) {
  const char* last = row + (length - 1) * position_bytes;
  int64_t count = 1;
  while (count < length && std::memcmp(last - count * position_bytes, last, position_bytes) == 0) {
    ++count;
  }
  return count;
}

}  // namespace

int64_t padding_of(const at::Tensor& batch) {
  if (!may_be_sequences(batch)) {
    return 0;
  }
  const int64_t rows = batch.size(0), length = batch.size(1);
  const auto position_bytes = static_cast<int64_t>(batch.nbytes()) / (rows * length);
  const auto* data = static_cast<const char*>(batch.const_data_ptr());
  const char* padding = nullptr;
  int64_t longest = 0, needed_in_all = 0;
  for (int64_t number = 0; number < rows; ++number) {
    const char* row = data + number * length * position_bytes;
    const char* last = row + (length - 1) * position_bytes;
    const int64_t equal = equal_at_end(row, length, position_bytes);
    if (equal > 1 && padding != nullptr && std::memcmp(padding, last, position_bytes) != 0) {
      return 0;
    }
    const int64_t needed = equal > 1 ? length - equal : length;
    padding = equal > 1 ? last : padding;
    longest = std::max(longest, needed);
    needed_in_all += needed;
  }
  if (padding == nullptr || longest == 0) {
    return 0;
  }
  const int64_t mean = (needed_in_all + rows - 1) / rows;
  return (rows << (3 * kBits)) | (length << (2 * kBits)) | (longest << kBits) | mean;
}

}  // namespace neuron
