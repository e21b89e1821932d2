// Which solver a mask gets, and every threshold that decides it. None changes a result by more than
// `tol`; all were tuned for speed, against what each says.
//
//   mask                                              solver                         file
//   few unknowns, and factoring is cheaper than       sparse direct (band Cholesky)  direct.h
//     iterating by kSweepsCycles or kMultigridCycles
//   known pixels everywhere: radius of the Jacobi     Chebyshev-accelerated sweeps   chebyshev.h
//     matrix <= kSweepsMaxRadius
//       at most 1 of kListsMinPixelsPerUnknown unknown    over lists of unknowns     list_sweeps.h
//       else                                              over the whole image       sweeps.h
//   holes that known pixels do not reach into         conjugate gradients with a     cg.h, vcycle.h
//                                                       multigrid V-cycle
//
// Beside that, images of up to kLanesMaxPixels are solved one system per vector lane, larger ones
// with pixels of a row in a vector; and the threads share an image (team.h) or have one each.
#pragma once

#include <cstdint>

namespace rf {
namespace impute {

// ==== direct solver

constexpr int64_t kDirectMaxUnknown = 1024;
constexpr int64_t kDirectColumnValues = 16;  // values of a column there is room for, on average
constexpr int64_t kDirectMaxReach = 128;     // unknowns between the ends of a column, at most
// Clock cycles that iterating takes per pixel and channel: by sweeps, and by multigrid cycles,
// which masks with clusters of unknowns need. Measured on Zen 3, as DirectSolver::cycles_of.
constexpr int64_t kSweepsCycles = 15, kMultigridCycles = 35;

// ==== sweeps or multigrid

// Sweeps up to this spectral radius of T, multigrid beyond: then 36 sweeps are needed, which cost
// about as much as six cycles.
constexpr double kSweepsMaxRadius = 0.935;
// T^2 1 and T^4 1 that say the radius is larger, early.
constexpr double kCoarseAboveSecond = 0.995, kCoarseAboveFourth = 0.96;
// Even numbers: two arrays take turns, and the result shall be in the first.
constexpr int kMaxSweeps = 64;  // in one go
constexpr int kMoreSweeps = 2;  // at a time, if the planned ones were not enough
// The start is off by the range at most. Tuned such that the planned sweeps nearly always suffice.
constexpr double kStartError = 8;
// With more unknowns the whole image is faster, and the lists would not fit where they are put.
constexpr int64_t kListsMinPixelsPerUnknown = 8;

// ==== vectors and threads

// Small images fill vectors with one system per lane, large ones with pixels of a row. Cycles are
// 1.5 times faster per lane at 64 x 64 and equal at 96 x 96; sweeps are equal at 64 x 64.
constexpr int64_t kLanesMaxPixels = 64 * 64;
// Threads share an image for the cycles if there are too few systems for each to have its own, or
// if the scratch of one per thread is more than a last-level cache holds; and if all have enough
// to do.
constexpr int64_t kSharedMinPixels = 576 * 576, kSharedPixelsPerThread = 1 << 15;
constexpr int kMaxTeam = 16;
// More than one, as bands differ in how much of them is unknown.
constexpr int64_t kTeamBandsPerThread = 4;
// A pass over fewer takes a few microseconds, about what it takes to hand it out.
constexpr int64_t kTeamMinElements = 32768;

}  // namespace impute
}  // namespace rf
