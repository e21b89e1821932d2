// RF_HD marks small functions that run in CPU kernels,
// CUDA kernels and the host-executed CUDA kernels alike.
#pragma once

#ifdef __CUDACC__
#define RF_HD __host__ __device__ __forceinline__
#else
#define RF_HD inline
#endif
