// The global memory that a call may touch: its arrays, each with a shadow for races and with what
// is counted of its traffic.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "counters.h"
#include "races.h"

namespace rf::ptx {

constexpr int kSectorBytes = 32;

struct Array {
  uint64_t begin = 0, end = 0;
  int argument = 0;       // which pointer of the call
  bool writable = false;  // not const in the C API
  Shadow shadow;
  std::vector<uint8_t> unwritten;  // per byte, of writable arrays: nothing stored in this call yet
  std::vector<uint8_t> seen;       // per sector: 1 read, 2 written in this launch
  ArrayTraffic load, store;
};

// A cache of sectors that forgets the least recently used.
class SectorCache {
 public:
  void reset(int bytes);
  bool touch(uint64_t sector);  // whether it was there; it is afterwards

 private:
  struct Node {
    uint64_t sector;
    int newer, older;
  };
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, int> where_;
  size_t capacity_ = 0;
  int newest_ = -1, oldest_ = -1;

  void unlink(int i);
  void push_newest(int i);
};

class CallMemory {
 public:
  void begin_call(const char* function);
  // The next pointer argument of the call; null and empty arrays count as arguments too.
  void add(const void* data, size_t bytes, bool writable);
  void begin_launch();
  void begin_block(int l1_bytes) { l1_.reset(l1_bytes); }
  Array* find(uint64_t address, int bytes);
  std::vector<Array>& arrays() { return arrays_; }
  SectorCache& l1() { return l1_; }
  const char* function() const { return function_; }

 private:
  std::vector<Array> arrays_;
  SectorCache l1_;
  size_t last_ = 0;
  int arguments_ = 0;
  const char* function_ = "";
};

}  // namespace rf::ptx
