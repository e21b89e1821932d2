// Calls every op of the C API on small made-up inputs and prints a digest of each result. Built for
// two machines, the two outputs must be equal: run_aarch64.sh.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "include/roarfast.h"

namespace {

constexpr int64_t kN = 3, kC = 3, kH = 37, kW = 41, kP = kH * kW;
constexpr uint64_t kSeed = 7;

void expect_ok(rf_status status, const char* op) {
  if (status == RF_OK) return;
  std::printf("%s failed: %s\n", op, rf_last_error());
  std::exit(1);
}

template <typename T>
void print_digest(const char* op, const char* variant, const std::vector<T>& result) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto* bytes = reinterpret_cast<const unsigned char*>(result.data());
  for (size_t i = 0; i < result.size() * sizeof(T); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  std::printf("%-20s %-28s %016llx\n", op, variant, static_cast<unsigned long long>(hash));
}

struct Random {
  uint64_t state = 1;
  uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 33);
  }
  double value() { return (static_cast<double>(next() % 20001) - 10000) / 4096; }
};

// Signed values; `ties` rectifies them and leaves few distinct ones.
template <typename T>
std::vector<T> maps(int64_t count, bool ties = false) {
  Random random;
  std::vector<T> a(count);
  for (T& v : a) {
    double value = random.value();
    if (ties) value = value > 0 ? static_cast<double>(static_cast<int>(4 * value)) / 4 : 0;
    v = static_cast<T>(value);
  }
  return a;
}

std::vector<uint8_t> bytes(int64_t count, uint32_t below) {
  Random random;
  std::vector<uint8_t> a(count);
  for (uint8_t& v : a) v = static_cast<uint8_t>(random.next() % below);
  return a;
}

// Finite halves and bfloat16s: any bits but the top exponents.
std::vector<uint16_t> halves(int64_t count) {
  Random random;
  std::vector<uint16_t> a(count);
  for (uint16_t& v : a) v = static_cast<uint16_t>(random.next() & 0xbbff);
  return a;
}

std::vector<unsigned char> workspace(int64_t size) { return std::vector<unsigned char>(size + 64); }

template <typename T>
void filters(rf_dtype dtype, const char* name, const std::vector<T>& a) {
  std::vector<T> out(a.size());
  auto work = workspace(rf_gaussian_filter_workspace_bytes(dtype, kN, kH, kW, 4, 4, 0, 0));
  expect_ok(rf_gaussian_filter(a.data(), out.data(), dtype, kN, kH, kW, 1, 1, 4, 4, 0, 0,
                               RF_REFLECT, RF_REFLECT, 0, work.data(), nullptr),
            "gaussian_filter");
  print_digest("gaussian_filter", name, out);
  work = workspace(rf_maximum_filter_workspace_bytes(dtype, kN, kH, kW, 5, 4, 0, 0));
  expect_ok(rf_maximum_filter(a.data(), out.data(), dtype, kN, kH, kW, 5, 4, 0, 0, RF_MIRROR,
                              RF_CONSTANT, 0.5, work.data(), nullptr),
            "maximum_filter");
  print_digest("maximum_filter", name, out);
  for (const int axis : {0, 1}) {
    expect_ok(
        rf_sobel(a.data(), out.data(), dtype, kN, kH, kW, axis, RF_WRAP, RF_NEAREST, 0, nullptr),
        "sobel");
    print_digest("sobel", name, out);
  }
}

template <typename T>
void measures(rf_dtype dtype, const char* name, const std::vector<T>& a) {
  std::vector<double> variation(kN);
  auto work = workspace(rf_total_variation_workspace_bytes(dtype, kN, kH, kW));
  for (const rf_tv_kind kind : {RF_TV_ANISOTROPIC, RF_TV_ISOTROPIC}) {
    expect_ok(rf_total_variation(a.data(), variation.data(), dtype, kN, kH, kW, kind, RF_TV_MINMAX,
                                 work.data(), nullptr),
              "total_variation");
    print_digest("total_variation", name, variation);
  }
  const std::vector<uint8_t> codes = bytes(kN * kP, 12);
  std::vector<double> sums(kN * 10);
  expect_ok(rf_code_sums(a.data(), codes.data(), sums.data(), dtype, kN, kP, 10, nullptr),
            "code_sums");
  print_digest("code_sums", name, sums);
}

template <typename T>
void selection(rf_dtype dtype, const char* name, const std::vector<T>& a) {
  const double drops[] = {0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9};
  std::vector<uint8_t> out(kN * kP);
  auto work = workspace(rf_rank_codes_workspace_bytes(dtype, kN, kP, 7));
  for (const rf_rule rule : {RF_EXACT, RF_PERCENTILE, RF_STRICT}) {
    for (const rf_order order : {RF_MORF, RF_LERF}) {
      expect_ok(rf_rank_codes(a.data(), out.data(), dtype, kN, kP, drops, 7, rule, order, kSeed,
                              nullptr, nullptr, work.data(), nullptr),
                "rank_codes");
      print_digest("rank_codes", name, out);
    }
  }
  work = workspace(rf_removal_mask_workspace_bytes(dtype, kN, kP));
  expect_ok(rf_removal_mask(a.data(), out.data(), dtype, kN, kP, 0.3, RF_EXACT, RF_MORF, 0, kSeed,
                            nullptr, nullptr, work.data(), nullptr),
            "removal_mask");
  print_digest("removal_mask", name, out);
  const double q[] = {0, 12.5, 50, 99};
  std::vector<double> quantiles(kN * 4);
  work = workspace(rf_percentile_workspace_bytes(dtype, kN, kP, 4));
  expect_ok(rf_percentile(a.data(), quantiles.data(), dtype, RF_FLOAT64, kN, kP, q, 4, nullptr,
                          work.data(), nullptr),
            "percentile");
  print_digest("percentile", name, quantiles);
}

void masks() {
  const std::vector<uint8_t> mask = bytes(kN * kP, 2);
  std::vector<int64_t> shape(kN * 5);
  auto work = workspace(rf_mask_geometry_workspace_bytes(kN, kH, kW));
  expect_ok(rf_mask_geometry(mask.data(), shape.data(), kN, kH, kW, work.data(), nullptr),
            "mask_geometry");
  print_digest("mask_geometry", "", shape);
  std::vector<float> distances(kN * kP);
  work = workspace(rf_distance_transform_workspace_bytes(kN, kH, kW));
  expect_ok(
      rf_distance_transform(mask.data(), distances.data(), kN, kH, kW, 1, work.data(), nullptr),
      "distance_transform");
  print_digest("distance_transform", "", distances);
  std::vector<double> fraction(kN);
  expect_ok(rf_removed_fraction(mask.data(), fraction.data(), kN, kP, 0, nullptr),
            "removed_fraction");
  print_digest("removed_fraction", "", fraction);
}

void removal() {
  const std::vector<float> x = maps<float>(kN * kC * kP);
  const std::vector<uint8_t> mask = bytes(kN * kP, 2), pixels = bytes(kN * kC * kP, 256);
  const double values[kC] = {0.25, -1, 3};
  std::vector<float> out(x.size());
  for (const rf_layout layout : {RF_NCHW, RF_NHWC}) {
    for (const rf_fill_kind kind :
         {RF_FILL_VALUES, RF_FILL_KEPT_MEAN, RF_FILL_IMAGE_MEAN, RF_FILL_NOISE}) {
      expect_ok(rf_fill(x.data(), mask.data(), out.data(), RF_FLOAT32, kN, kC, kP, layout, 0, kind,
                        values, 0, nullptr, 0.5, 2, kSeed, nullptr, nullptr),
                "fill");
      print_digest("fill", "float32", out);
    }
  }
  auto work = workspace(rf_remove_workspace_bytes(RF_FLOAT32, kN, kC, kP, 0));
  expect_ok(rf_remove(x.data(), x.data(), out.data(), RF_FLOAT32, RF_FLOAT32, kN, kC, kP, RF_NCHW,
                      0, 0.4, RF_EXACT, RF_MORF, 0, kSeed, nullptr, nullptr, RF_FILL_VALUES, values,
                      0, nullptr, 0, 1, kSeed, work.data(), nullptr),
            "remove");
  print_digest("remove", "float32", out);
  const double edge = 1.0 / 6, corner = 1.0 / 12;
  std::vector<int32_t> iterations(kN * kC), status(kN * kC);
  std::vector<double> residual(kN * kC);
  std::vector<int64_t> empty(kN);
  for (const double tol : {1e-5, 1e-9}) {
    work = workspace(rf_impute_linear_workspace_bytes(RF_FLOAT32, kN, kC, kH, kW, corner, edge,
                                                      corner, edge, tol));
    expect_ok(rf_impute_linear(x.data(), mask.data(), out.data(), RF_FLOAT32, RF_FLOAT32, kN, kC,
                               kH, kW, RF_NCHW, kN, corner, edge, corner, edge, tol, 1000, 0, 0.01,
                               RF_IMPUTE_GAUSSIAN, kSeed, nullptr, iterations.data(),
                               residual.data(), status.data(), empty.data(), work.data(), nullptr),
              "impute_linear");
    print_digest("impute_linear", tol > 1e-6 ? "tol 1e-5" : "tol 1e-9", out);
  }
  const int64_t index[] = {2, 0, 1, 2};
  const float table[4 * kC] = {0.01f, 0.02f, 0.03f, -1, -0.5f, 0, 0.1f, 0.2f, 0.3f, 9, 8, 7};
  const std::vector<uint8_t> codes = bytes(kN * kP, 6);
  std::vector<float> batch(4 * kC * 32 * 32);
  for (const rf_layout layout : {RF_NCHW, RF_NHWC}) {
    for (const rf_layout out_layout : {RF_NCHW, RF_NHWC}) {
      expect_ok(rf_gather_batch(pixels.data(), layout, kN, kC, kH, kW, index, nullptr, 4,
                                codes.data(), 1, 2, nullptr, 0, nullptr, RF_UINT8, table, 2, 32, 32,
                                1, 1, kSeed, 3, batch.data(), RF_FLOAT32, out_layout, nullptr),
                "gather_batch");
      print_digest("gather_batch", "", batch);
    }
  }
}

void randomness() {
  std::vector<float> out(kN * kP);
  expect_ok(rf_pixel_random(out.data(), kN, kP, kSeed, nullptr, nullptr), "pixel_random");
  print_digest("pixel_random", "", out);
  const int64_t index[kN] = {5, 0, 123456789012};
  expect_ok(rf_philox_normal(index, out.data(), kN, kP, kSeed, 2, 8, nullptr), "philox_normal");
  print_digest("philox_normal", "", out);
  std::vector<uint8_t> mask(kN * kP);
  expect_ok(rf_block_random(mask.data(), kN, kH, kW, 0.3, kSeed, nullptr, nullptr), "block_random");
  print_digest("block_random", "", mask);
}

}  // namespace

int main(int argc, char** argv) {
  rf_set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  const std::vector<float> floats = maps<float>(kN * kP), tied = maps<float>(kN * kP, true);
  const std::vector<double> doubles = maps<double>(kN * kP);
  const std::vector<uint16_t> short_floats = halves(kN * kP);
  filters(RF_FLOAT32, "float32", floats);
  filters(RF_FLOAT64, "float64", doubles);
  filters(RF_FLOAT16, "float16", short_floats);
  filters(RF_BFLOAT16, "bfloat16", short_floats);
  measures(RF_FLOAT32, "float32", floats);
  measures(RF_FLOAT64, "float64", doubles);
  measures(RF_FLOAT16, "float16", short_floats);
  measures(RF_UINT8, "uint8", bytes(kN * kP, 256));
  selection(RF_FLOAT32, "float32", floats);
  selection(RF_FLOAT32, "float32, tied", tied);
  selection(RF_FLOAT64, "float64", doubles);
  selection(RF_FLOAT16, "float16", short_floats);
  selection(RF_UINT8, "uint8", bytes(kN * kP, 256));
  masks();
  removal();
  randomness();
}
