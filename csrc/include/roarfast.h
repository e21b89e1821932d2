// The C API of roarfast: one header, several implementations. Every backend library (CPU at each
// SIMD level, CUDA, CUDA on the host) defines these same functions, so a caller picks a backend by
// picking a library.
//
// Conventions
//  - Arrays are dense and row-major. Shapes stand beside their pointers: [n, h, w] is n images of
//    h rows and w columns; leading dimensions are flattened into n.
//  - Sizes and offsets are int64. Empty arrays are fine. Inputs are never written.
//  - Pointers that may be null say what null means.
//  - Nothing here allocates device memory, synchronises, chooses a stream or prints. Scratch memory
//    comes from the caller: ask rf_<op>_workspace_bytes(), pass that many bytes as `workspace`
//    (null where the answer is 0).
//  - CUDA pointers are device pointers and work is queued on `stream`; CPU backends ignore it.
//  - The return value is a status; rf_last_error() has the sentence for it.
//  - Results do not depend on the batch, the number of threads or the SIMD level, and agree between
//    backends to the bit (rf_impute_linear: to its tolerance).
//
// Contents
//   the library itself
//   filters      rf_gaussian_filter, rf_maximum_filter, rf_sobel
//   measures     rf_total_variation, rf_code_sums, rf_distance_transform, rf_mask_geometry
//   selection    rf_percentile, rf_removal_mask, rf_rank_codes, rf_removed_fraction
//   removal      rf_fill, rf_remove, rf_impute_linear
//   data         rf_gather_batch, rf_gather_batch_resized
//   randomness   rf_pixel_random, rf_block_random, rf_philox_normal
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ==== types that every function shares

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

// Memory order of images: planes or pixels.
typedef enum rf_layout {
  RF_NCHW = 0,
  RF_NHWC = 1,
} rf_layout;

typedef void* rf_stream;  // cudaStream_t, or null for the default stream

// ==== the library itself

const char* rf_last_error(void);    // why the last call on this thread did not return RF_OK
const char* rf_backend_name(void);  // "cpu-base", "cpu-v3", "cuda", "simt"
const char* rf_build_info(void);    // compiler, flags, CUDA architectures: one "key=value" per line

void rf_set_num_threads(int threads);  // for calls from this thread; CUDA backends ignore it
int rf_get_num_threads(void);

// ==== filters: scipy.ndimage on the last two axes

// The border modes of scipy.ndimage.
typedef enum rf_border {
  RF_REFLECT = 0,   // d c b a | a b c d | d c b a   half-sample symmetric
  RF_MIRROR = 1,    //   d c b | a b c d | c b a     whole-sample symmetric
  RF_NEAREST = 2,   // a a a a | a b c d | d d d d
  RF_WRAP = 3,      // a b c d | a b c d | a b c d
  RF_CONSTANT = 4,  // k k k k | a b c d | k k k k   k is cval
} rf_border;

// Separable correlation with normalised exp(-x^2 / (2 sigma^2)), |x| <= radius, per axis,
// or with its derivative of order 1, 2, ... A sigma of 0 leaves that axis alone.
//   in    [n, h, w]  floats
//   out   [n, h, w]  of the same dtype
rf_status rf_gaussian_filter(const void* in, void* out, rf_dtype dtype, int64_t n, int64_t h,
                             int64_t w, double sigma_y, double sigma_x, int64_t radius_y,
                             int64_t radius_x, int64_t order_y, int64_t order_x, rf_border mode_y,
                             rf_border mode_x, double cval, void* workspace, rf_stream stream);
int64_t rf_gaussian_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h, int64_t w,
                                           int64_t radius_y, int64_t radius_x, int64_t order_y,
                                           int64_t order_x);

// Maximum of a window that starts size / 2 + origin before its pixel: as in SciPy, even sizes reach
// further back than forward.
//   in    [n, h, w]  any dtype
//   out   [n, h, w]  of the same dtype
rf_status rf_maximum_filter(const void* in, void* out, rf_dtype dtype, int64_t n, int64_t h,
                            int64_t w, int64_t size_y, int64_t size_x, int64_t origin_y,
                            int64_t origin_x, rf_border mode_y, rf_border mode_x, double cval,
                            void* workspace, rf_stream stream);
int64_t rf_maximum_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h, int64_t w,
                                          int64_t size_y, int64_t size_x, int64_t origin_y,
                                          int64_t origin_x);

// [-1 0 1] along `axis` (0 = rows, 1 = columns), [1 2 1] along the other.
//   in    [n, h, w]  floats
//   out   [n, h, w]  of the same dtype
rf_status rf_sobel(const void* in, void* out, rf_dtype dtype, int64_t n, int64_t h, int64_t w,
                   int axis, rf_border mode_y, rf_border mode_x, double cval, rf_stream stream);

// ==== measures

typedef enum rf_tv_kind {
  RF_TV_ANISOTROPIC = 0,  // sum of |differences| to the right and downwards
  RF_TV_ISOTROPIC = 1,    // sum of the lengths of (difference to the right, difference downwards)
} rf_tv_kind;

typedef enum rf_tv_norm {
  RF_TV_NONE = 0,
  RF_TV_MINMAX = 1,  // of the image scaled to [0, 1]; a constant image has 0
  RF_TV_MEAN = 2,    // per pair of neighbours (anisotropic), per pixel (isotropic)
} rf_tv_norm;

// Total variation of each image.
//   in    [n, h, w]  any dtype
//   out   [n]
rf_status rf_total_variation(const void* in, double* out, rf_dtype dtype, int64_t n, int64_t h,
                             int64_t w, rf_tv_kind kind, rf_tv_norm norm, void* workspace,
                             rf_stream stream);
int64_t rf_total_variation_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h, int64_t w);

// The sum of the values of each code; codes >= count are left out. Sums are of integers (fixed
// point, common/code_sums.h): the same bits in any order.
//   in     [n, f]      any dtype
//   codes  [n, f]
//   out    [n, count]  NaN for a row with NaN or infinity
rf_status rf_code_sums(const void* in, const uint8_t* codes, double* out, rf_dtype dtype, int64_t n,
                       int64_t f, int64_t count, rf_stream stream);

// The Euclidean distance of each nonzero pixel to the nearest zero one, 0 at zero pixels; exact.
//   mask   [n, h, w]  h, w <= 32767
//   out    [n, h, w]  int32, squared, INT32_MAX in images without a zero pixel; if `root` float32
//                     distances and infinity
rf_status rf_distance_transform(const uint8_t* mask, void* out, int64_t n, int64_t h, int64_t w,
                                int root, void* workspace, rf_stream stream);
int64_t rf_distance_transform_workspace_bytes(int64_t n, int64_t h, int64_t w);

// The shape of masks.
//   mask   [n, h, w]  nonzero = removed
//   out    [n, 5]     removed pixels; those without a removed neighbour among four; among eight;
//                     pairs of 4-neighbours of which one is removed; removed pixels at the border
rf_status rf_mask_geometry(const uint8_t* mask, int64_t* out, int64_t n, int64_t h, int64_t w,
                           void* workspace, rf_stream stream);
int64_t rf_mask_geometry_workspace_bytes(int64_t n, int64_t h, int64_t w);

// ==== selection: which pixels go
//
// Rows are samples: n of them with f features each (pixels, or channels * pixels), f < 2^32.
// docs/selection.md defines the rules. Arguments that mean the same in every function:
//   q, drops       host pointers on every backend; at most RF_MAX_RATES values
//   seed           decides between ties, together with the sample id
//   index      [n] sample ids; null: the row number
//   nan_flags  [n] receives 1 for a row that has a NaN, else 0; null: not checked.
//                  A NaN counts as +inf

enum { RF_MAX_RATES = 254 };

typedef enum rf_rule {
  RF_EXACT = 0,       // floor(drop * f) features by rank, ties by a hash of seed, id and feature
  RF_PERCENTILE = 1,  // value >= its percentile
  RF_STRICT = 2,      // value > its percentile
  RF_VALUE = 3,       // value > (1 - drop) * maximum (least relevant first: < drop * maximum)
} rf_rule;

// What nan_flags says of a row; the last two under RF_VALUE, which takes finite values >= 0.
enum { RF_ROW_NAN = 1, RF_ROW_NEGATIVE = 2, RF_ROW_INFINITE = 4 };

typedef enum rf_order {
  RF_MORF = 0,  // most relevant first
  RF_LERF = 1,  // least relevant first
} rf_order;

// numpy.percentile with linear interpolation.
//   in    [n, f]   any dtype
//   out   [n, nq]  out_dtype: that of `in` if float and nq = 1 (NumPy's result for a Python float
//                  q), or float64 (its result for an array of q, and for integers)
rf_status rf_percentile(const void* in, void* out, rf_dtype dtype, rf_dtype out_dtype, int64_t n,
                        int64_t f, const double* q, int64_t nq, uint8_t* nan_flags, void* workspace,
                        rf_stream stream);
int64_t rf_percentile_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f, int64_t nq);

// The features that one drop rate removes. keep != 0 keeps these and removes the rest.
//   in    [n, f]  any dtype
//   mask  [n, f]  1 = removed
rf_status rf_removal_mask(const void* in, uint8_t* mask, rf_dtype dtype, int64_t n, int64_t f,
                          double drop, rf_rule rule, rf_order order, int keep, uint64_t seed,
                          const int64_t* index, uint8_t* nan_flags, void* workspace,
                          rf_stream stream);
int64_t rf_removal_mask_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f);

// All drop rates in one byte per feature: codes <= j where drops[j] removes it.
//   in     [n, f]     any dtype
//   codes  [n, f]     index of the first of the ascending drops that removes the feature, or ndrops
//   drops  [ndrops]   ascending
rf_status rf_rank_codes(const void* in, uint8_t* codes, rf_dtype dtype, int64_t n, int64_t f,
                        const double* drops, int64_t ndrops, rf_rule rule, rf_order order,
                        uint64_t seed, const int64_t* index, uint8_t* nan_flags, void* workspace,
                        rf_stream stream);
int64_t rf_rank_codes_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f, int64_t ndrops);

// How many features have a code <= rate_index, as a fraction of f.
//   codes  [n, f]
//   out    [n]
rf_status rf_removed_fraction(const uint8_t* codes, double* out, int64_t n, int64_t f,
                              int64_t rate_index, rf_stream stream);

// ==== removal: what replaces them

typedef enum rf_fill_kind {
  RF_FILL_VALUES = 0,      // values [c], or [n, c] if values_per_image
  RF_FILL_KEPT_MEAN = 1,   // mean of the pixels that stay (all if none does), per image and channel
  RF_FILL_IMAGE_MEAN = 2,  // mean of all pixels, per image and channel
  RF_FILL_IMAGE = 3,       // the same feature of `other`
  RF_FILL_NOISE = 4,       // noise_mean + noise_std * standard normal, keyed by seed and index
} rf_fill_kind;

// Replaces masked pixels, copies the others. Values for uint8 images are rounded, half to even,
// and clipped.
//   x       [n, c, p] or [n, p, c]: `layout`, p pixels; floats or uint8
//   mask    [n, p], or as x if per_feature; != 0 is removed
//   out     as x
//   values  [c], or [n, c] if values_per_image; null for other kinds
//   other   as x; null for other kinds
//   index   [n]  sample ids of the noise; null: 0, 1, 2, ...
rf_status rf_fill(const void* x, const uint8_t* mask, void* out, rf_dtype dtype, int64_t n,
                  int64_t c, int64_t p, rf_layout layout, int per_feature, rf_fill_kind kind,
                  const double* values, int values_per_image, const void* other, double noise_mean,
                  double noise_std, uint64_t seed, const int64_t* index, rf_stream stream);

// rf_removal_mask of `in` and rf_fill of x in one pass. `seed` decides between ties, `noise_seed`
// draws noise.
//   in      [n, p], or as x if per_feature; any dtype
rf_status rf_remove(const void* x, const void* in, void* out, rf_dtype dtype, rf_dtype in_dtype,
                    int64_t n, int64_t c, int64_t p, rf_layout layout, int per_feature, double drop,
                    rf_rule rule, rf_order order, int keep, uint64_t seed, const int64_t* index,
                    uint8_t* nan_flags, rf_fill_kind kind, const double* values,
                    int values_per_image, const void* other, double noise_mean, double noise_std,
                    uint64_t noise_seed, void* workspace, rf_stream stream);
int64_t rf_remove_workspace_bytes(rf_dtype in_dtype, int64_t n, int64_t c, int64_t p,
                                  int per_feature);

typedef enum rf_impute_noise {
  RF_IMPUTE_GAUSSIAN = 0,  // standard deviation `noise`
  RF_IMPUTE_UNIFORM = 1,   // in [0, noise)
} rf_impute_noise;

typedef enum rf_impute_status {
  RF_IMPUTE_CONVERGED = 0,
  RF_IMPUTE_NOT_CONVERGED = 1,  // max_iter was not enough
  RF_IMPUTE_NON_FINITE = 2,     // a known pixel is NaN or infinite; this system's output is void
} rf_impute_status;

// Noisy linear imputation (ROAD). Removed pixels become the weighted mean of their neighbours
// inside the image, simultaneously, to `tol` of the range of the known pixels; then noise is added
// to them. Known pixels are copied. Method: docs/imputation.md.
//   x           [n, c, h, w] or [n, h, w, c]: `layout`; floats or uint8
//   mask        [mask_count, h, w], mask_count 1 or n; != 0 is removed
//   out         as x, in out_dtype: that of x; for uint8 also float16 or float32
//   weight_x    of the neighbours left and right
//   weight_y    of those above and below
//   weight_main of upper left and lower right
//   weight_anti of upper right and lower left
//   index       [n]     sample ids that key the noise; null: 0, 1, 2, ...
//   iterations  [n, c]
//   residual    [n, c]  last correction / range of the known pixels
//   status      [n, c]  rf_impute_status
//   empty       [n]     how many removed pixels no known pixel determines: they get empty_value
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

// ==== data

// A batch in one pass: pick samples, replace removed pixels, pad and crop, flip, normalise.
//   images   uint8 [n, c, h, w] or [n, h, w, c]: `layout`
//   index    [b] in [0, n). A CPU backend fails on another value; CUDA, which cannot know, writes
//            samples of NaN.
//   ids      [b]  what the randomness of each sample is keyed by; null: index
//   codes    [n, code_channels, h, w], code_channels 1 or c, planes in either layout. A pixel is
//            removed where codes <= rate_index, with keep != 0 where codes > rate_index.
//            null: nothing is removed
//   rates    [b]  the rate index of each sample of the batch; null: rate_index for all
//   imputed  as images, uint8 or float16 in units of 0..255: what replaces removed pixels.
//            null: the fill of the table does
//   table    [4, c]: scale, bias, fill, pad. out = pixel * scale + bias, rounded twice in float32;
//            fill and pad are written as they are
//   out      [b, c, out_h, out_w] or [b, out_h, out_w, c]: `out_layout`
// augment_crop and augment_flip != 0: place of the crop and mirroring are random, keyed by seed,
// epoch and id (common/augment.h). Otherwise the crop is in the middle and nothing is mirrored.
rf_status rf_gather_batch(const uint8_t* images, rf_layout layout, int64_t n, int64_t c, int64_t h,
                          int64_t w, const int64_t* index, const int64_t* ids, int64_t b,
                          const uint8_t* codes, int64_t code_channels, int rate_index,
                          const int64_t* rates, int keep, const void* imputed,
                          rf_dtype imputed_dtype, const float* table, int64_t pad, int64_t out_h,
                          int64_t out_w, int augment_crop, int augment_flip, uint64_t seed,
                          uint64_t epoch, void* out, rf_dtype out_dtype, rf_layout out_layout,
                          rf_stream stream);

// The same with a crop of random size, shape and place, resampled to out_h x out_w: bilinear and
// antialiased, after removal (common/resized_crop.h). No padding. Sides are at most 16384, epoch is
// below 2^44.
//   table    [3, c]: scale, bias, fill; fill in units of 0..255, as removed pixels are resampled
//   scale_low, scale_high  the crop's share of the image's area, uniform
//   ratio_low, ratio_high  its width / height, uniform in the logarithm; log_ratio: of their ratio
rf_status rf_gather_batch_resized(const uint8_t* images, rf_layout layout, int64_t n, int64_t c,
                                  int64_t h, int64_t w, const int64_t* index, const int64_t* ids,
                                  int64_t b, const uint8_t* codes, int64_t code_channels,
                                  int rate_index, const int64_t* rates, int keep,
                                  const void* imputed, rf_dtype imputed_dtype, const float* table,
                                  int64_t out_h, int64_t out_w, double scale_low, double scale_high,
                                  double ratio_low, double ratio_high, double log_ratio,
                                  int augment_flip, uint64_t seed, uint64_t epoch, void* out,
                                  rf_dtype out_dtype, rf_layout out_layout, rf_stream stream);

// ==== randomness: Philox 4x32-10 keyed by seed and sample id (common/philox.h)
//
//   index  [n]  sample ids; null, where allowed: 0, 1, 2, ...

// Uniform numbers in [0, 1).
//   out    [n, f]
rf_status rf_pixel_random(float* out, int64_t n, int64_t f, uint64_t seed, const int64_t* index,
                          rf_stream stream);

// One random rectangle per image, its area `drop` of the image (common/random_block.h).
//   mask   [n, h, w]  1 inside
rf_status rf_block_random(uint8_t* mask, int64_t n, int64_t h, int64_t w, double drop,
                          uint64_t seed, const int64_t* index, rf_stream stream);

// Standard normals: out[i, k] is number k of draw `draw` of sample index[i]. Draw d owns the Philox
// blocks [d * b, (d + 1) * b) of its domain, b = ceil(features / 4).
//   index  [n]  not null
//   out    [n, features]
rf_status rf_philox_normal(const int64_t* index, float* out, int64_t n, int64_t features,
                           int64_t seed, int64_t draw, int64_t domain, rf_stream stream);

#ifdef __cplusplus
}  // extern "C"
#endif
