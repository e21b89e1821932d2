// Scratch memory of CPU kernels.
#pragma once

#include <cstdint>

namespace rf {

// Hands out cache-line-aligned pieces of a workspace. With a null base it only counts, so the same
// layout code answers how many bytes are needed.
class Arena {
 public:
  explicit Arena(void* base) : base_(reinterpret_cast<uintptr_t>(base)), at_(base_) {}
  template <typename T>
  T* take(int64_t count) {
    at_ = (at_ + kLine - 1) / kLine * kLine;
    T* piece = reinterpret_cast<T*>(at_);
    at_ += static_cast<uintptr_t>(count) * sizeof(T);
    return piece;
  }
  int64_t bytes() const {
    return static_cast<int64_t>(at_ - base_) + kLine;
  }  // the base may be unaligned

 private:
  static constexpr int64_t kLine = 64;
  uintptr_t base_, at_;
};

}  // namespace rf
