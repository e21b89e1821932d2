// Scratch memory of CPU kernels.
#pragma once

#include <cstdint>

namespace rf {

// Hands out cache-line-aligned pieces of a workspace. With a null base it only counts, so the same
// layout code answers how many bytes are needed.
class Arena {
 public:
  // kStaggered: for many fields that are walked together. Pieces a multiple of 4 KB apart would
  // compete for the same cache sets, and loads would wait for unrelated stores (4K aliasing).
  enum Spacing { kDense, kStaggered };

  explicit Arena(void* base, Spacing spacing = kDense)
      : base_(reinterpret_cast<uintptr_t>(base)), at_(base_), spacing_(spacing) {}

  template <typename T>
  T* take(int64_t count) {
    at_ = (at_ + kLine - 1) / kLine * kLine;
    T* piece = reinterpret_cast<T*>(at_);
    const uintptr_t bytes = static_cast<uintptr_t>(count) * sizeof(T);
    at_ += bytes;
    if (spacing_ == kStaggered && bytes >= kPage) at_ += (kStagger + kPage - bytes % kPage) % kPage;
    return piece;
  }
  int64_t bytes() const { return static_cast<int64_t>(at_ - base_ + kLine); }  // base: unaligned

 private:
  static constexpr uintptr_t kLine = 64, kPage = 4096, kStagger = 1088;
  uintptr_t base_, at_;
  Spacing spacing_;
};

}  // namespace rf
