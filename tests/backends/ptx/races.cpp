#include "races.h"

#include "program.h"

namespace rf::ptx {
namespace {

// Whether something orders an earlier access before one of now.
bool ordered(const Moment& before, const Moment& now) {
  if (before.block != now.block) return false;
  if (before.epoch != now.epoch || before.thread == now.thread) return true;
  return before.thread / kLanes == now.thread / kLanes && before.warp_epoch != now.warp_epoch;
}

bool raced_by_reads(const Cell& c, const Moment& now) {
  if (c.read_by_blocks || !ordered(c.read, now)) return true;
  if (c.read.block != now.block || c.read.epoch != now.epoch) return false;
  return c.read_by_warps || (c.read_by_lanes && c.read.warp_epoch == now.warp_epoch);
}

void note_read(Cell& c, const Moment& now, uint32_t since) {
  const bool read = c.read.epoch >= since;
  const bool current = read && c.read.epoch == now.epoch && c.read.block == now.block;
  const bool same_warp = c.read.thread / kLanes == now.thread / kLanes;
  c.read_by_blocks = read && (c.read_by_blocks || c.read.block != now.block);
  c.read_by_warps = current && (c.read_by_warps || !same_warp);
  c.read_by_lanes = current && c.read.warp_epoch == now.warp_epoch &&
                    (c.read_by_lanes || c.read.thread != now.thread);
  c.read = now;
}

const char* check_read(Cell& c, const Moment& now, uint32_t since, bool read_only_cache,
                       bool initialised) {
  const bool written = c.write.epoch >= since;
  if (written && !ordered(c.write, now)) return "race: this read and a write";
  if (written && read_only_cache) return "ld.global.nc of what this launch writes: a write";
  if (!written && !initialised) return "read of shared memory that no thread of the block wrote";
  note_read(c, now, since);
  return nullptr;
}

// Storing the value that is there already harms nobody; atomics are ordered among themselves.
const char* check_write(Cell& c, const Moment& now, uint32_t since, bool atomic, bool changes) {
  const bool written = c.write.epoch >= since, read = c.read.epoch >= since;
  if (written && changes && !(atomic && c.atomic) && !ordered(c.write, now))
    return "race: this write and a write";
  if (read && changes && raced_by_reads(c, now)) return "race: this write and a read";
  c.write = now;
  c.atomic = atomic;
  return nullptr;
}

}  // namespace

void Shadow::refine(int bytes, size_t memory_bytes) {
  std::vector<Cell> finer(memory_bytes / bytes + 1);
  if (cell_bytes_ != 0) {
    for (size_t i = 0; i < finer.size(); ++i) finer[i] = cells_[i * bytes / cell_bytes_];
  }
  cells_.swap(finer);
  cell_bytes_ = bytes;
}

const char* Shadow::check(uint64_t offset, int bytes, size_t memory_bytes, const Moment& now,
                          uint32_t since, AccessKind kind, bool changes, bool initialised) {
  if (cell_bytes_ == 0 || bytes < cell_bytes_) refine(bytes, memory_bytes);
  const bool writes = kind == AccessKind::kWrite || kind == AccessKind::kAtomic;
  for (uint64_t at = offset; at < offset + bytes; at += cell_bytes_) {
    Cell& c = cells_[at / cell_bytes_];
    const char* wrong =
        writes ? check_write(c, now, since, kind == AccessKind::kAtomic, changes)
               : check_read(c, now, since, kind == AccessKind::kReadOnlyCache, initialised);
    if (wrong != nullptr) {
      other_ = std::string(wrong).find("and a read") == std::string::npos ? c.write : c.read;
      return wrong;
    }
  }
  return nullptr;
}

std::string Shadow::explain(const char* wrong, const Moment& now) const {
  std::string text = wrong;
  if (text.find("and a ") == std::string::npos && text.find(": a write") == std::string::npos)
    return text;
  text += " by thread " + std::to_string(other_.thread);
  if (other_.block != now.block) text += " of block " + std::to_string(other_.block);
  return text + " are not ordered";
}

}  // namespace rf::ptx
