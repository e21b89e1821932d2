// What the selftest*.cpp files share.
#pragma once

#include <cstddef>

#include "common/status.h"

namespace rf::simt {

struct Selftest {
  const char* name;
  rf_status (*run)();
};
struct SelftestList {
  const Selftest* tests;
  size_t size;
};

SelftestList whole_kernels();  // selftest.cpp
SelftestList features();       // selftest_features.cpp
SelftestList bugs();           // selftest_bugs.cpp

constexpr unsigned kFull = 0xffffffffu;

// Of a launch and, where it succeeded, a comparison of what it computed.
template <typename Check>
rf_status then(rf_status status, const char* what, Check check) {
  if (status != RF_OK || check()) return status;
  return fail(RF_INTERNAL_ERROR, "wrong result: %s", what);
}

}  // namespace rf::simt
