// For roarfast.compat: the random numbers of NumPy's and torch's global generators, which other
// packages add to imputed pixels, and masks of theirs. Weak: only the CPU modules have them.
#pragma once

#include <cstdint>

#define RF_HOST_ONLY __attribute__((weak))

extern "C" {

// n normals of np.random.randn. state: the 624 words of its generator; place: the next word, and
// whether a normal is kept for the next call; kept: that one.
RF_HOST_ONLY void rf_numpy_normals(uint32_t* state, int64_t* place, double* kept, double* out,
                                   int64_t n);

// What torch.randn(sizes[0]), torch.randn(sizes[1]) ... give on the CPU, one after the other; sizes
// are 0 or at least 16 (torch has another way for fewer). state: 624 words; next: the next of them.
RF_HOST_ONLY void rf_torch_normals(uint32_t* state, int64_t* next, const int64_t* sizes,
                                   int64_t count, float* out);

// removed[i] = kept[i] == 0; how many, or -1 if a value is neither 0 nor above 1/2.
RF_HOST_ONLY int64_t rf_removed_pixels_float32(const float* kept, uint8_t* removed, int64_t n);
RF_HOST_ONLY int64_t rf_removed_pixels_float64(const double* kept, uint8_t* removed, int64_t n);

// Sets mask at the indices; how many differ, or -1 if one is not in [0, n).
RF_HOST_ONLY int64_t rf_mark_pixels(const int64_t* indices, int64_t k, uint8_t* mask, int64_t n);

// Adds scale * value at the removed pixels of images [images, channels, pixels], values in the
// order of the pixels, one channel after the other. removed [images, pixels].
RF_HOST_ONLY void rf_add_in_order_float32(float* x, const uint8_t* removed, const float* values,
                                          double scale, int64_t images, int64_t channels,
                                          int64_t pixels);
RF_HOST_ONLY void rf_add_in_order_float64(double* x, const uint8_t* removed, const float* values,
                                          double scale, int64_t images, int64_t channels,
                                          int64_t pixels);

// Adds scale * values [channels, k] at pixels of x [channels, pixels] that all differ.
RF_HOST_ONLY void rf_add_at_float32(float* x, const int64_t* indices, const double* values,
                                    double scale, int64_t channels, int64_t pixels, int64_t k);
RF_HOST_ONLY void rf_add_at_float64(double* x, const int64_t* indices, const double* values,
                                    double scale, int64_t channels, int64_t pixels, int64_t k);
}
