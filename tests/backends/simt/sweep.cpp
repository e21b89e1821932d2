#include "sweep.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>

#include "common/status.h"
#include "device.h"

namespace rf::simt {

namespace {

constexpr int64_t kMaxSide = 512, kPixels = kMaxSide * kMaxSide;
constexpr int64_t kChannels = 3,
                  kWorkspace = int64_t{1} << 30;  // what is not touched costs nothing

struct Free {
  void operator()(void* p) const { free(p); }
};
using Buffer = std::unique_ptr<void, Free>;
Buffer zeros(int64_t bytes) { return Buffer(calloc(static_cast<size_t>(bytes), 1)); }

// The first launch of a kernel runs (dry launches need its static shared memory), so there are real
// arrays: an all-zero image, mask and index.
struct Arrays {
  Buffer in = zeros(kPixels * kChannels * 8), out = zeros(kPixels * kChannels * 8),
         mask = zeros(kPixels * kChannels), small = zeros(1 << 16), flags = zeros(1 << 16),
         workspace = zeros(kWorkspace);
};

struct Case {
  const char* op;
  std::initializer_list<rf_dtype> dtypes;
  rf_status (*call)(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w);
};

constexpr std::initializer_list<rf_dtype> kFloats = {RF_FLOAT16, RF_BFLOAT16, RF_FLOAT32,
                                                     RF_FLOAT64};
constexpr std::initializer_list<rf_dtype> kReals = {RF_FLOAT16, RF_BFLOAT16, RF_FLOAT32, RF_FLOAT64,
                                                    RF_UINT8};
const double kDrops[9] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
const double kQ[8] = {10, 20, 30, 40, 50, 60, 70, 80};

template <typename T>
T* as(const Buffer& buffer) {
  return static_cast<T*>(buffer.get());
}

rf_status impute(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  const int64_t bytes = rf_impute_linear_workspace_bytes(dtype, 1, 1, h, w, 1, 2, 1, 2, 1e-3);
  if (bytes > kWorkspace)
    return fail(RF_INVALID_ARGUMENT, "%lld bytes of workspace", (long long)bytes);
  return rf_impute_linear(a.in.get(), as<uint8_t>(a.mask), a.out.get(), dtype, dtype, 1, 1, h, w,
                          RF_NCHW, 1, 1, 2, 1, 2, 1e-3, 100, 0, 0, RF_IMPUTE_GAUSSIAN, 0, nullptr,
                          as<int32_t>(a.small), as<double>(a.small) + 1, as<int32_t>(a.small) + 4,
                          as<int64_t>(a.small) + 3, a.workspace.get(), nullptr);
}

template <int kSigma>
rf_status gaussian(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_gaussian_filter(a.in.get(), a.out.get(), dtype, 1, h, w, kSigma, kSigma, 4 * kSigma,
                            4 * kSigma, 0, 0, RF_REFLECT, RF_REFLECT, 0, a.workspace.get(),
                            nullptr);
}

template <int kSize>
rf_status maximum(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_maximum_filter(a.in.get(), a.out.get(), dtype, 1, h, w, kSize, kSize, 0, 0, RF_REFLECT,
                           RF_REFLECT, 0, a.workspace.get(), nullptr);
}

rf_status sobel(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_sobel(a.in.get(), a.out.get(), dtype, 1, h, w, 1, RF_REFLECT, RF_REFLECT, 0, nullptr);
}

rf_status total_variation(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_total_variation(a.in.get(), as<double>(a.small), dtype, 1, h, w, RF_TV_ANISOTROPIC,
                            RF_TV_MINMAX, a.workspace.get(), nullptr);
}

rf_status removal_mask(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_removal_mask(a.in.get(), as<uint8_t>(a.out), dtype, 1, h * w, 0.5, RF_EXACT, RF_MORF, 0,
                         0, nullptr, as<uint8_t>(a.flags), a.workspace.get(), nullptr);
}

rf_status rank_codes(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_rank_codes(a.in.get(), as<uint8_t>(a.out), dtype, 1, h * w, kDrops, 9, RF_EXACT,
                       RF_MORF, 0, nullptr, as<uint8_t>(a.flags), a.workspace.get(), nullptr);
}

rf_status percentile(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_percentile(a.in.get(), a.out.get(), dtype, RF_FLOAT64, 1, h * w, kQ, 8,
                       as<uint8_t>(a.flags), a.workspace.get(), nullptr);
}

rf_status remove(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_remove(a.in.get(), a.in.get(), a.out.get(), dtype, dtype, 1, kChannels, h * w, RF_NCHW,
                   0, 0.5, RF_EXACT, RF_MORF, 0, 0, nullptr, as<uint8_t>(a.flags),
                   RF_FILL_IMAGE_MEAN, nullptr, 0, nullptr, 0, 1, 0, a.workspace.get(), nullptr);
}

rf_status fill(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_fill(a.in.get(), as<uint8_t>(a.mask), a.out.get(), dtype, 1, kChannels, h * w, RF_NCHW,
                 0, RF_FILL_KEPT_MEAN, nullptr, 0, nullptr, 0, 1, 0, nullptr, nullptr);
}

rf_status gather_batch(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_gather_batch(as<uint8_t>(a.in), RF_NCHW, 1, kChannels, h, w, as<int64_t>(a.small),
                         as<int64_t>(a.small), 1, nullptr, 0, 0, nullptr, 0, nullptr, RF_UINT8,
                         as<float>(a.flags), 0, h, w, 0, 0, 0, 0, a.out.get(), dtype, RF_NCHW,
                         nullptr);
}

rf_status removed_fraction(const Arrays& a, rf_dtype, int64_t h, int64_t w) {
  return rf_removed_fraction(as<uint8_t>(a.mask), as<double>(a.small), 1, h * w, 3, nullptr);
}

rf_status code_sums(const Arrays& a, rf_dtype dtype, int64_t h, int64_t w) {
  return rf_code_sums(a.in.get(), as<uint8_t>(a.mask), as<double>(a.small), dtype, 1, h * w, 9,
                      nullptr);
}

rf_status distance_transform(const Arrays& a, rf_dtype, int64_t h, int64_t w) {
  return rf_distance_transform(as<uint8_t>(a.mask), a.out.get(), 1, h, w, 1, a.workspace.get(),
                               nullptr);
}

rf_status mask_geometry(const Arrays& a, rf_dtype, int64_t h, int64_t w) {
  return rf_mask_geometry(as<uint8_t>(a.mask), as<int64_t>(a.small), 1, h, w, a.workspace.get(),
                          nullptr);
}

rf_status pixel_random(const Arrays& a, rf_dtype, int64_t h, int64_t w) {
  return rf_pixel_random(as<float>(a.out), 1, h * w, 0, nullptr, nullptr);
}

rf_status block_random(const Arrays& a, rf_dtype, int64_t h, int64_t w) {
  return rf_block_random(as<uint8_t>(a.out), 1, h, w, 0.5, 0, nullptr, nullptr);
}

rf_status philox_normal(const Arrays& a, rf_dtype, int64_t h, int64_t w) {
  return rf_philox_normal(as<int64_t>(a.small), as<float>(a.out), 1, h * w, 0, 0, 0, nullptr);
}

const Case kCases[] = {
    {"impute_linear", kReals, impute},
    {"gaussian_filter_1", kFloats, gaussian<1>},
    {"gaussian_filter_5", kFloats, gaussian<5>},
    {"gaussian_filter_10", kFloats, gaussian<10>},
    {"maximum_filter_3", kReals, maximum<3>},
    {"maximum_filter_41", kReals, maximum<41>},
    {"sobel", kFloats, sobel},
    {"total_variation", kFloats, total_variation},
    {"removal_mask", kFloats, removal_mask},
    {"rank_codes", kFloats, rank_codes},
    {"percentile", kFloats, percentile},
    {"remove", kFloats, remove},
    {"fill", kFloats, fill},
    {"gather_batch", {RF_FLOAT16, RF_BFLOAT16, RF_FLOAT32}, gather_batch},
    {"removed_fraction", {RF_UINT8}, removed_fraction},
    {"code_sums", kReals, code_sums},
    {"distance_transform", {RF_BOOL}, distance_transform},
    {"mask_geometry", {RF_BOOL}, mask_geometry},
    {"pixel_random", {RF_FLOAT32}, pixel_random},
    {"block_random", {RF_BOOL}, block_random},
    {"philox_normal", {RF_FLOAT32}, philox_normal},
};

rf_status sweep_sizes(const Case& what, int64_t side, int64_t* calls) {
  const Arrays arrays;
  for (const rf_dtype dtype : what.dtypes) {
    for (int64_t h = 1; h <= side; ++h) {
      for (int64_t w = 1; w <= side; ++w) {
        forget_allowances();
        ++*calls;
        const rf_status status = what.call(arrays, dtype, h, w);
        if (status == RF_OK) continue;
        const std::string why = error_buffer();
        return fail(status, "%s of %lld x %lld, dtype code %d, on %s: %s", what.op,
                    static_cast<long long>(h), static_cast<long long>(w), static_cast<int>(dtype),
                    device().name, why.c_str());
      }
    }
  }
  return RF_OK;
}

}  // namespace

const char* sweep_ops() {
  static const std::string names = [] {
    std::string text;
    for (const Case& c : kCases) text += (text.empty() ? "" : " ") + std::string(c.op);
    return text;
  }();
  return names.c_str();
}

rf_status sweep(const char* op, const char* device_name, int64_t side, int64_t* calls) {
  *calls = 0;
  if (side < 1 || side > kMaxSide) {
    return fail(RF_INVALID_ARGUMENT, "side must be 1 to %lld", static_cast<long long>(kMaxSide));
  }
  for (const Case& what : kCases) {
    if (strcmp(what.op, op) != 0) continue;
    const std::string before = device().name;
    if (!set_device(device_name)) {
      return fail(RF_INVALID_ARGUMENT, "no device profile is called %s", device_name);
    }
    set_dry(true);
    const rf_status status = sweep_sizes(what, side, calls);
    set_dry(false);
    set_device(before.c_str());
    return status;
  }
  return fail(RF_INVALID_ARGUMENT, "no sweep is called %s", op);
}

}  // namespace rf::simt
