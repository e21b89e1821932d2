// Addresses of lanes: what memory they mean, whether the access is allowed, in range, aligned and
// ordered with those of other threads.
#include "machine.h"
#include "text.h"

namespace rf::ptx {
namespace {

std::string sized(const char* verb, int bytes, const std::string& where) {
  return std::string(verb) + " of " + std::to_string(bytes) + " bytes at " + where;
}

Space space_of(uint64_t address) {
  switch (address & kWindowMask) {
    case kSharedWindow:
      return Space::kShared;
    case kLocalWindow:
      return Space::kLocal;
    case kParamWindow:
      return Space::kParam;
    default:
      return Space::kGlobal;
  }
}

uint8_t* module_variable(const Machine& m, uint64_t address, int bytes, bool write) {
  for (const auto& [name, variable] : m.module->variables) {
    const uint64_t begin = reinterpret_cast<uint64_t>(variable->bytes.data());
    const bool inside = address >= begin && address + bytes <= begin + variable->bytes.size();
    if (inside && !(write && variable->constant)) return reinterpret_cast<uint8_t*>(address);
  }
  return nullptr;
}

Place global_place(Warp& w, uint64_t address, int bytes, bool write, int lane) {
  Machine& m = *w.block->machine;
  Array* array = m.memory->find(address, bytes);
  uint8_t* host = reinterpret_cast<uint8_t*>(address);
  if (array == nullptr) {
    host = module_variable(m, address, bytes, write);
    if (host == nullptr)
      fault(w, lane,
            sized(write ? "global write" : "global read", bytes, hex(address)) +
                ", outside every array of the call");
    return {host, Space::kGlobal, 0, nullptr};
  }
  if (write && !array->writable)
    fault(w, lane, "write to argument " + std::to_string(array->argument) + ", which is const");
  return {host, Space::kGlobal, address - array->begin, array};
}

}  // namespace

Place resolve(Warp& w, Space space, uint64_t address, int bytes, bool write, int lane) {
  Machine& m = *w.block->machine;
  const char* verb = write ? "write" : "read";
  if (address % bytes != 0)
    fault(w, lane, sized(write ? "misaligned write" : "misaligned read", bytes, hex(address)));
  if (space == Space::kGeneric) {
    space = space_of(address);
    if (space != Space::kGlobal) address &= ~kWindowMask;
  }
  const auto checked = [&](uint8_t* base, uint64_t size, const char* name) {
    if (address > size || address + bytes > size)
      fault(w, lane,
            sized(verb, bytes, std::to_string(static_cast<int64_t>(address))) + " of " +
                std::to_string(size) + " bytes of " + name + " memory");
    return Place{base + address, space, address, nullptr};
  };
  switch (space) {
    case Space::kShared:
      return checked(w.block->shared.data(), w.block->shared.size(), "shared");
    case Space::kLocal:
      return checked(w.local + static_cast<size_t>(lane) * m.kernel->local_bytes,
                     m.kernel->local_bytes, "local");
    case Space::kParam:
      if (write) fault(w, lane, "write to a parameter of the kernel");
      return checked(m.params.data(), m.params.size(), "parameter");
    default:
      return global_place(w, address, bytes, write, lane);
  }
}

void check_order(Warp& w, const Place& place, int bytes, AccessKind kind, bool changes, int lane) {
  Machine& m = *w.block->machine;
  const bool shared = place.space == Space::kShared;
  if (!shared && place.array == nullptr) return;
  const Moment now = {m.epoch, w.epoch, m.block_number,
                      static_cast<uint16_t>(w.first_thread + lane)};
  const char* wrong;
  if (shared) {
    wrong = w.block->shadow.check(place.offset, bytes, w.block->shared.size(), now, m.block_epoch,
                                  kind, changes, false);
  } else {
    Array& array = *place.array;
    if (!array.unwritten.empty()) {
      uint8_t* fresh = array.unwritten.data() + place.offset;
      for (int i = 0; i < bytes; ++i) {
        if (kind == AccessKind::kWrite) fresh[i] = 0;
        if (fresh[i])
          fault(w, lane,
                "read of byte " + std::to_string(place.offset + i) + " of argument " +
                    std::to_string(array.argument) + ", which nothing has written");
      }
    }
    const uint64_t base = array.begin & ~uint64_t{15};  // cells are aligned as accesses are
    wrong = array.shadow.check(place.offset + (array.begin - base), bytes, array.end - base, now,
                               m.launch_epoch, kind, changes, true);
  }
  if (wrong == nullptr) return;
  std::string where = shared ? "shared memory, byte " : "global memory, byte ";
  where += std::to_string(place.offset);
  if (!shared) where += " of argument " + std::to_string(place.array->argument);
  fault(w, lane,
        (shared ? w.block->shadow : place.array->shadow).explain(wrong, now) + " (" + where + ")");
}

void fault(const Warp& w, int lane, const std::string& what) {
  const Machine& m = *w.block->machine;
  const uint32_t thread = w.first_thread + lane;
  const Dim3& d = m.block_dim;
  const Origin& origin = m.kernel->origin[w.current];
  char where[160];
  snprintf(where, sizeof(where), "block (%u, %u, %u), thread (%u, %u, %u)", m.block_index.x,
           m.block_index.y, m.block_index.z, thread % d.x, thread / d.x % d.y, thread / d.x / d.y);
  throw Fault(what + " at " + m.module->place_of(origin) + " [kernel " + m.kernel->name + ", " +
              where + ", PTX line " + std::to_string(origin.ptx_line) + ": " + origin.text +
              ", seed " + std::to_string(m.options.seed) + "]");
}

}  // namespace rf::ptx
