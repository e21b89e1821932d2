// The judge of every access to shared memory, through whatever pointer (instrumentation.cpp reports
// them). An access is wrong when it
//   - is outside every array of the block,
//   - reads what no thread of the block has written,
//   - conflicts with an access of another thread that no barrier
//     (or, in a warp, collective) separates from it.
#include "checks.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "block.h"
#include "shared.h"

namespace rf::simt {

namespace {

enum Readers : uint8_t { kOneThread, kOneWarp, kManyWarps };

// Who touched a byte of shared memory last. Epochs only grow (block.h), so an entry of an earlier
// block is old by itself and nothing is ever cleared.
struct Cell {
  uint32_t write_epoch;
  uint32_t write_warp_epoch;
  uint32_t read_epoch;
  uint32_t read_warp_epoch;
  uint16_t writer;
  uint16_t reader;
  bool atomic_write;
  Readers readers;
};
Cell cells[kArenaBytes];

// Writing what is already there is no race. The check comes before the store, so a conflicting
// store is remembered here and judged at the thread's next check, when it has happened.
struct PendingWrite {
  size_t bytes = 0;  // 0: none
  size_t offset;
  unsigned char before[32];
  uint16_t other;
  bool other_wrote;
  const void* code;
} pending;

[[noreturn]] void fail_race(const char* does, size_t offset, int other, const char* did,
                            const void* code) {
  set_failure_code(code);
  const uint3 who = block.threads[other].index;
  char name[64] =
      "other threads";  // only the last of several readers is known, and may be this thread
  if (other != block.current->id)
    snprintf(name, sizeof(name), "thread (%u, %u, %u)", who.x, who.y, who.z);
  fail_launch("race: this thread %s %s, which %s %s without a barrier in between", does,
              describe_shared(offset), name, did);
}

// Of two threads in one block and one barrier epoch: only a warp collective can order them.
bool ordered_in_warp(int other, uint32_t other_warp_epoch, int self, uint32_t warp_epoch) {
  return other / kWarpSize == self / kWarpSize && other_warp_epoch < warp_epoch;
}

void check_read(Cell& cell, size_t offset, int self, uint32_t epoch, uint32_t warp_epoch,
                const void* code) {
  if (cell.read_epoch == epoch && cell.read_warp_epoch == warp_epoch && cell.reader == self &&
      cell.readers == kOneThread) {
    return;
  }
  if (cell.write_epoch < block.first_epoch) {
    set_failure_code(code);
    fail_launch("this thread reads %s, which no thread of the block has written",
                describe_shared(offset));
  }
  if (cell.write_epoch == epoch && cell.writer != self &&
      !ordered_in_warp(cell.writer, cell.write_warp_epoch, self, warp_epoch)) {
    fail_race("reads", offset, cell.writer, "wrote", code);
  }
  if (cell.read_epoch != epoch) {
    cell.readers = kOneThread;
  } else if (cell.readers == kManyWarps || cell.reader / kWarpSize != self / kWarpSize) {
    cell.readers = kManyWarps;
  } else if (cell.read_warp_epoch < warp_epoch) {
    cell.readers =
        kOneThread;  // earlier readers of this warp are ordered before anything it does now
  } else if (cell.reader != self) {
    cell.readers = kOneWarp;
  }
  cell.read_epoch = epoch;
  cell.read_warp_epoch = warp_epoch;
  cell.reader = static_cast<uint16_t>(self);
}

// The thread whose access conflicts with a write by `self`, or -1.
int conflict_with_write(const Cell& cell, int self, uint32_t epoch, uint32_t warp_epoch,
                        bool atomic, bool* wrote) {
  if (cell.write_epoch == epoch && cell.writer != self && !(atomic && cell.atomic_write) &&
      !ordered_in_warp(cell.writer, cell.write_warp_epoch, self, warp_epoch)) {
    *wrote = true;
    return cell.writer;
  }
  if (cell.read_epoch == epoch && !(cell.readers == kOneThread && cell.reader == self) &&
      (cell.readers == kManyWarps ||
       !ordered_in_warp(cell.reader, cell.read_warp_epoch, self, warp_epoch))) {
    *wrote = false;
    return cell.reader;
  }
  return -1;
}

void check_write(size_t offset, size_t bytes, bool atomic, const void* code) {
  const int self = block.current->id;
  const uint32_t epoch = block.epoch, warp_epoch = block.warps[self / kWarpSize].epoch;
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = cells[offset + i];
    bool wrote = false;
    const int other = conflict_with_write(cell, self, epoch, warp_epoch, atomic, &wrote);
    if (other >= 0 && (atomic || bytes > sizeof(pending.before))) {
      fail_race(atomic ? "atomically changes" : "writes", offset + i, other,
                wrote ? "wrote" : "read", code);
    }
    if (other >= 0 && pending.bytes == 0) {
      pending.bytes = bytes;
      pending.offset = offset;
      memcpy(pending.before, arena + offset, bytes);
      pending.other = static_cast<uint16_t>(other);
      pending.other_wrote = wrote;
      pending.code = code;
    }
    cell.write_epoch = epoch;
    cell.write_warp_epoch = warp_epoch;
    cell.writer = static_cast<uint16_t>(self);
    cell.atomic_write = atomic;
  }
}

}  // namespace

void check_shared(size_t offset, size_t bytes, Access access, const void* code) {
  if (!in_kernel()) return;
  flush_pending_race_check();
  if (!is_allocated(offset, bytes)) {
    set_failure_code(code);
    fail_launch("out-of-range %s of shared memory: %s", access == Access::kRead ? "load" : "store",
                describe_shared(offset));
  }
  if (access == Access::kRead) {
    const int self = block.current->id;
    const uint32_t warp_epoch = block.warps[self / kWarpSize].epoch;
    for (size_t i = 0; i < bytes; ++i)
      check_read(cells[offset + i], offset + i, self, block.epoch, warp_epoch, code);
    return;
  }
  if (access == Access::kAtomic && cells[offset].write_epoch < block.first_epoch) {
    set_failure_code(code);
    fail_launch("this thread atomically changes %s, which no thread of the block has written",
                describe_shared(offset));
  }
  check_write(offset, bytes, access == Access::kAtomic, code);
}

void flush_pending_race_check() {
  if (pending.bytes == 0) return;
  const bool changed = memcmp(pending.before, arena + pending.offset, pending.bytes) != 0;
  pending.bytes = 0;
  if (changed)
    fail_race("writes", pending.offset, pending.other, pending.other_wrote ? "wrote" : "read",
              pending.code);
}

void drop_pending_race_check() { pending.bytes = 0; }

}  // namespace rf::simt
