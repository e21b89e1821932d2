// The C API of roarfast. One header, several implementations: every backend library (CPU at each
// SIMD level, CUDA, CUDA-on-host) defines these same functions, so a caller picks a backend by
// picking a library.
//
// Conventions
//  - Arrays are dense and row-major; `n` images of `h` x `w`, leading dimensions flattened into
//  `n`.
//  - Sizes and offsets are int64. Empty arrays are fine. Inputs are never written.
//  - Nothing here allocates device memory, synchronises, chooses a stream or prints. Scratch memory
//  comes
//    from the caller: ask rf_<op>_workspace_bytes(), pass a pointer (null where it says 0).
//  - CUDA pointers are device pointers and work is queued on `stream`; CPU backends ignore
//  `stream`.
//  - The return value is a status; rf_last_error() has the sentence for it (per thread).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rf_status {
  RF_OK = 0,
  RF_INVALID_ARGUMENT = 1,   // a size, enum or pointer that the function does not accept
  RF_UNSUPPORTED_DTYPE = 2,  // the op has no kernel for this dtype
  RF_CUDA_ERROR = 3,         // a launch failed
  RF_INTERNAL_ERROR = 4,
} rf_status;

typedef enum rf_dtype {
  RF_FLOAT16 = 0,
  RF_BFLOAT16 = 1,
  RF_FLOAT32 = 2,
  RF_FLOAT64 = 3,
  RF_UINT8 = 4,
  RF_BOOL = 5,  // one byte, 0 or 1
} rf_dtype;

// The border modes of scipy.ndimage; d c b a | a b c d | d c b a and so on.
typedef enum rf_border {
  RF_REFLECT = 0,   // d c b a | a b c d | d c b a   (half-sample symmetric)
  RF_MIRROR = 1,    //   d c b | a b c d | c b a     (whole-sample symmetric)
  RF_NEAREST = 2,   // a a a a | a b c d | d d d d
  RF_WRAP = 3,      // a b c d | a b c d | a b c d
  RF_CONSTANT = 4,  // k k k k | a b c d | k k k k
} rf_border;

typedef void* rf_stream;  // cudaStream_t, or null

// ---- the library itself
// ---------------------------------------------------------------------------------
const char* rf_last_error(void);    // why the last call on this thread did not return RF_OK
const char* rf_backend_name(void);  // "cpu-base", "cpu-v3", "cpu-v4", "cuda", "simt"
const char* rf_build_info(void);    // compiler, flags, CUDA architectures: one "key=value" per line
void rf_set_num_threads(int threads);  // for calls from this thread; CUDA backends ignore it
int rf_get_num_threads(void);

// ---- total_variation
// ------------------------------------------------------------------------------------
typedef enum rf_tv_kind { RF_TV_ANISOTROPIC = 0, RF_TV_ISOTROPIC = 1 } rf_tv_kind;
typedef enum rf_tv_norm { RF_TV_NONE = 0, RF_TV_MINMAX = 1, RF_TV_MEAN = 2 } rf_tv_norm;
// in [n, h, w] any dtype -> out double [n]
rf_status rf_total_variation(const void* in, double* out, rf_dtype dtype, int64_t n, int64_t h,
                             int64_t w, rf_tv_kind kind, rf_tv_norm norm, void* workspace,
                             rf_stream stream);
int64_t rf_total_variation_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h, int64_t w);

// ---- gaussian_filter
// ------------------------------------------------------------------------------------ Separable
// correlation with normalised exp(-x^2 / (2 sigma^2)), |x| <= radius, per axis, or with its
// derivative of an order; sigma 0 leaves that axis alone. in, out [n, h, w] of one float dtype.
rf_status rf_gaussian_filter(const void* in, void* out, rf_dtype dtype, int64_t n, int64_t h,
                             int64_t w, double sigma_y, double sigma_x, int64_t radius_y,
                             int64_t radius_x, int64_t order_y, int64_t order_x, rf_border mode_y,
                             rf_border mode_x, double cval, void* workspace, rf_stream stream);
int64_t rf_gaussian_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h, int64_t w,
                                           int64_t radius_y, int64_t radius_x, int64_t order_y,
                                           int64_t order_x);

// ---- maximum_filter
// ------------------------------------------------------------------------------------- The window
// of an output pixel starts size / 2 + origin before it, as in SciPy (even sizes reach further
// back). in, out [n, h, w] of one dtype, any of rf_dtype.
rf_status rf_maximum_filter(const void* in, void* out, rf_dtype dtype, int64_t n, int64_t h,
                            int64_t w, int64_t size_y, int64_t size_x, int64_t origin_y,
                            int64_t origin_x, rf_border mode_y, rf_border mode_x, double cval,
                            void* workspace, rf_stream stream);
int64_t rf_maximum_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h, int64_t w,
                                          int64_t size_y, int64_t size_x, int64_t origin_y,
                                          int64_t origin_x);

// ---- sobel
// ----------------------------------------------------------------------------------------------
// scipy.ndimage.sobel: [-1 0 1] along `axis` (0 = rows, 1 = columns), [1 2 1] along the other.
rf_status rf_sobel(const void* in, void* out, rf_dtype dtype, int64_t n, int64_t h, int64_t w,
                   int axis, rf_border mode_y, rf_border mode_x, double cval, rf_stream stream);

// ---- gather_batch
// ---------------------------------------------------------------------------------------
typedef enum rf_layout {
  RF_NCHW = 0,
  RF_NHWC = 1
} rf_layout;  // memory order of images: planes or pixels
// images uint8 [n, c, h, w] or [n, h, w, c] -> out [b, c, out_h, out_w] in either memory order:
// pick samples, replace removed pixels, pad and crop, flip, normalise.
//  - index [b] in [0, n). A CPU backend fails on another value; CUDA, which cannot know, writes NaN
//  samples.
//  - ids [b]: what the randomness of each sample is keyed by; null for index itself.
//  - codes [n, code_channels, h, w] (code_channels 1 or c, always planes), null for no removal: a
//  pixel is
//    removed where codes <= rate_index, with keep != 0 where codes > rate_index.
//  - imputed, the layout of images, uint8 or float16 in units of 0..255: replaces removed pixels;
//  null for fill.
//  - table float [4, c]: scale, bias, fill, pad. out = pixel * scale + bias, rounded twice in
//  float32; fill and
//    pad are written as they are.
//  - augment_crop, augment_flip != 0: place of the crop and mirroring are random (Philox,
//  kDomainAugment, keyed by
//    seed, epoch and id; see common/augment.h). Otherwise the crop is in the middle, and nothing is
//    mirrored.
rf_status rf_gather_batch(const uint8_t* images, rf_layout layout, int64_t n, int64_t c, int64_t h,
                          int64_t w, const int64_t* index, const int64_t* ids, int64_t b,
                          const uint8_t* codes, int64_t code_channels, int rate_index, int keep,
                          const void* imputed, rf_dtype imputed_dtype, const float* table,
                          int64_t pad, int64_t out_h, int64_t out_w, int augment_crop,
                          int augment_flip, uint64_t seed, uint64_t epoch, void* out,
                          rf_dtype out_dtype, rf_layout out_layout, rf_stream stream);
// ---- philox_normal
// -------------------------------------------------------------------------------------- Standard
// normals keyed by (seed, sample, feature, draw): out[i, f] is normal f of draw `draw` of sample
// index[i]. Draw d owns the Philox blocks [d * b, (d + 1) * b) of its domain, b = ceil(features /
// 4). index [n] -> out [n, features]
rf_status rf_philox_normal(const int64_t* index, float* out, int64_t n, int64_t features,
                           int64_t seed, int64_t draw, int64_t domain, rf_stream stream);
// ---- impute_linear
// --------------------------------------------------------------------------------------
typedef enum rf_impute_noise { RF_IMPUTE_GAUSSIAN = 0, RF_IMPUTE_UNIFORM = 1 } rf_impute_noise;
typedef enum rf_impute_status {
  RF_IMPUTE_CONVERGED = 0,
  RF_IMPUTE_NOT_CONVERGED = 1,  // max_iter was not enough
  RF_IMPUTE_NON_FINITE =
      2,  // a known pixel is NaN or infinite; the output of this system means nothing
} rf_impute_status;
// Removed pixels (mask != 0) become the weighted mean of their neighbours inside the image,
// simultaneously, to `tol` of the range of the known pixels; then noise is added to them. Known
// pixels are copied.
//   x [n, c, h, w], or [n, h, w, c]: `layout`; mask [mask_count, h, w], mask_count 1 or n
//   out: the dtype of x, or for uint8 x also float16 or float32
//   weights of the neighbours: weight_x left and right, weight_y above and below, weight_main upper
//   left and
//        lower right, weight_anti the other two
//   index int64 [n], sample ids that key the noise; null: 0, 1, 2 ...
//   iterations int32 [n, c]; residual double [n, c], last correction / range; status int32 [n, c],
//   rf_impute_status; empty int64 [n], removed pixels that no known pixel determines: they get
//   empty_value
rf_status rf_impute_linear(const void* x, const uint8_t* mask, void* out, rf_dtype in_dtype,
                           rf_dtype out_dtype, int64_t n, int64_t c, int64_t h, int64_t w,
                           rf_layout layout, int64_t mask_count, double weight_main,
                           double weight_y, double weight_anti, double weight_x, double tol,
                           int64_t max_iter, double empty_value, double noise,
                           rf_impute_noise noise_kind, uint64_t seed, const int64_t* index,
                           int32_t* iterations, double* residual, int32_t* status, int64_t* empty,
                           void* workspace, rf_stream stream);
int64_t rf_impute_linear_workspace_bytes(rf_dtype dtype, int64_t n, int64_t c, int64_t h, int64_t w,
                                         double weight_main, double weight_y, double weight_anti,
                                         double weight_x, double tol);
// ---- selection
// ------------------------------------------------------------------------------------------ Rows
// are samples: `n` of them with `f` features each (pixels, or channels * pixels); f < 2^32. Small
// arrays of parameters (q, drops) are host pointers on every backend. `index` [n] holds the sample
// ids that seed the randomness (null: the row number). `nan_flags` [n] receives 1 for a row that
// has a NaN, else 0 (null: not checked); a NaN counts as +inf. docs/selection.md defines the rules.
enum { RF_MAX_RATES = 254 };  // most q or drops in one call
typedef enum rf_rule { RF_EXACT = 0, RF_PERCENTILE = 1, RF_STRICT = 2 } rf_rule;
typedef enum rf_order { RF_MORF = 0, RF_LERF = 1 } rf_order;

// numpy.percentile with linear interpolation: in [n, f] any dtype -> out [n, nq]. out_dtype is the
// dtype of `in` (NumPy's result for a Python float q) or float64 (its result for an array of q, and
// for integers).
rf_status rf_percentile(const void* in, void* out, rf_dtype dtype, rf_dtype out_dtype, int64_t n,
                        int64_t f, const double* q, int64_t nq, uint8_t* nan_flags, void* workspace,
                        rf_stream stream);
int64_t rf_percentile_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f, int64_t nq);

// in [n, f] any dtype -> mask [n, f], 1 = removed. keep != 0 removes what would have stayed and
// keeps the rest.
rf_status rf_removal_mask(const void* in, uint8_t* mask, rf_dtype dtype, int64_t n, int64_t f,
                          double drop, rf_rule rule, rf_order order, int keep, uint64_t seed,
                          const int64_t* index, uint8_t* nan_flags, void* workspace,
                          rf_stream stream);
int64_t rf_removal_mask_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f);

// in [n, f] any dtype -> codes [n, f]: the index of the first of the ascending drops at which the
// feature is removed, ndrops if it never is.
rf_status rf_rank_codes(const void* in, uint8_t* codes, rf_dtype dtype, int64_t n, int64_t f,
                        const double* drops, int64_t ndrops, rf_rule rule, rf_order order,
                        uint64_t seed, const int64_t* index, uint8_t* nan_flags, void* workspace,
                        rf_stream stream);
int64_t rf_rank_codes_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f, int64_t ndrops);

// codes [n, f] -> out [n]: how many features have a code <= rate_index, as a fraction of f.
rf_status rf_removed_fraction(const uint8_t* codes, double* out, int64_t n, int64_t f,
                              int64_t rate_index, rf_stream stream);

// ---- fill, remove
// --------------------------------------------------------------------------------------- Images x,
// out [n, c, p] of p pixels, or [n, p, c]: `layout`; masks [n, p], or as x if per_feature.
typedef enum rf_fill_kind {
  RF_FILL_VALUES = 0,  // values [c], or [n, c] if values_per_image
  RF_FILL_KEPT_MEAN =
      1,  // mean of the pixels that stay, per image and channel (all pixels if none stays)
  RF_FILL_IMAGE_MEAN = 2,  // mean of all pixels, per image and channel
  RF_FILL_IMAGE = 3,       // the same feature of `other`, which is as x
  RF_FILL_NOISE = 4,       // noise_mean + noise_std * standard normal (Philox; seed, index)
} rf_fill_kind;
// Values for uint8 images are rounded to the nearest even integer and clipped.
rf_status rf_fill(const void* x, const uint8_t* mask, void* out, rf_dtype dtype, int64_t n,
                  int64_t c, int64_t p, rf_layout layout, int per_feature, rf_fill_kind kind,
                  const double* values, int values_per_image, const void* other, double noise_mean,
                  double noise_std, uint64_t seed, const int64_t* index, rf_stream stream);

// rf_removal_mask of `in` and rf_fill of x in one go. `seed` breaks ties, `noise_seed` draws noise.
rf_status rf_remove(const void* x, const void* in, void* out, rf_dtype dtype, rf_dtype in_dtype,
                    int64_t n, int64_t c, int64_t p, rf_layout layout, int per_feature, double drop,
                    rf_rule rule, rf_order order, int keep, uint64_t seed, const int64_t* index,
                    uint8_t* nan_flags, rf_fill_kind kind, const double* values,
                    int values_per_image, const void* other, double noise_mean, double noise_std,
                    uint64_t noise_seed, void* workspace, rf_stream stream);
int64_t rf_remove_workspace_bytes(rf_dtype in_dtype, int64_t n, int64_t c, int64_t p,
                                  int per_feature);

// ---- pixel_random, block_random
// ------------------------------------------------------------------------- out [n, f]: uniform in
// [0, 1).
rf_status rf_pixel_random(float* out, int64_t n, int64_t f, uint64_t seed, const int64_t* index,
                          rf_stream stream);
// mask [n, h, w]: one rectangle of 1s per image; csrc/common/random_block.h says which.
rf_status rf_block_random(uint8_t* mask, int64_t n, int64_t h, int64_t w, double drop,
                          uint64_t seed, const int64_t* index, rf_stream stream);

#ifdef __cplusplus
}  // extern "C"
#endif
