#include "memory.h"

#include <algorithm>

namespace rf::ptx {

void SectorCache::reset(int bytes) {
  capacity_ = static_cast<size_t>(std::max(bytes / kSectorBytes, 1));
  nodes_.clear(), where_.clear();
  newest_ = oldest_ = -1;
}

void SectorCache::unlink(int i) {
  const Node& n = nodes_[i];
  (n.newer >= 0 ? nodes_[n.newer].older : newest_) = n.older;
  (n.older >= 0 ? nodes_[n.older].newer : oldest_) = n.newer;
}

void SectorCache::push_newest(int i) {
  nodes_[i].newer = -1, nodes_[i].older = newest_;
  if (newest_ >= 0) nodes_[newest_].newer = i;
  newest_ = i;
  if (oldest_ < 0) oldest_ = i;
}

bool SectorCache::touch(uint64_t sector) {
  const auto found = where_.find(sector);
  if (found != where_.end()) {
    unlink(found->second);
    push_newest(found->second);
    return true;
  }
  int i;
  if (nodes_.size() < capacity_) {
    i = static_cast<int>(nodes_.size());
    nodes_.push_back({});
  } else {
    i = oldest_;
    unlink(i);
    where_.erase(nodes_[i].sector);
  }
  nodes_[i].sector = sector;
  where_[sector] = i;
  push_newest(i);
  return false;
}

void CallMemory::begin_call(const char* function) {
  arrays_.clear();
  last_ = 0, arguments_ = 0;
  function_ = function;
}

void CallMemory::add(const void* data, size_t bytes, bool writable) {
  const int argument = arguments_++;
  if (data == nullptr || bytes == 0) return;
  Array made;
  made.begin = reinterpret_cast<uint64_t>(data), made.end = made.begin + bytes;
  made.argument = argument, made.writable = writable;
  for (Array& other : arrays_) {
    if (made.begin >= other.end || other.begin >= made.end) continue;
    // Views of one buffer, such as an output that is the input: one array, of which all is written.
    other.begin = std::min(other.begin, made.begin), other.end = std::max(other.end, made.end);
    other.writable |= writable;
    other.unwritten.clear();
    return;
  }
  if (writable) made.unwritten.assign(bytes, 1);
  arrays_.push_back(std::move(made));
}

void CallMemory::begin_launch() {
  for (Array& array : arrays_) {
    array.seen.clear();
    array.load = array.store = {};
  }
}

Array* CallMemory::find(uint64_t address, int bytes) {
  const auto inside = [&](const Array& a) {
    return address >= a.begin && address + bytes <= a.end;
  };
  if (last_ < arrays_.size() && inside(arrays_[last_])) return &arrays_[last_];
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (!inside(arrays_[i])) continue;
    last_ = i;
    return &arrays_[i];
  }
  return nullptr;
}

}  // namespace rf::ptx
