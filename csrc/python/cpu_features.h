// Which SIMD level this processor can run; see
// roarfast/_backend.py, which loads the matching library.
#pragma once

namespace rf {

inline const char* best_simd_level() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  return v3 ? "v3" : "base";
#else
  return "base";
#endif
}

}  // namespace rf
