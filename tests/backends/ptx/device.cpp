// What devices have and what their drivers refuse.
#include "machine.h"

namespace rf::ptx {

DeviceProfile profile_of(int arch) {
  switch (arch) {
    case 75:
      return {75, 64 << 10, 64 << 10, 68};
    case 80:
      return {80, 163 << 10, 164 << 10, 108};
    case 86:
    case 89:
      return {arch, 99 << 10, 100 << 10, 84};
    case 120:
      return {120, 99 << 10, 100 << 10, 170};
    default:
      return {arch, 227 << 10, 228 << 10, 132};
  }
}

void check_configuration(const Machine& m) {
  const Kernel& k = *m.kernel;
  const uint64_t threads = m.block_dim.count();
  const auto refuse = [&](const std::string& why) {
    throw Fault("invalid launch of " + k.name + ": " + why);
  };
  if (m.grid.count() == 0 || threads == 0) refuse("an empty grid or block");
  if (threads > 1024 || m.block_dim.z > 64) refuse("too many threads in a block");
  if (k.max_threads && threads > static_cast<uint64_t>(k.max_threads))
    refuse(std::to_string(threads) + " threads, but __launch_bounds__ says " +
           std::to_string(k.max_threads));
  if (m.grid.x > 0x7fffffffu || m.grid.y > 65535 || m.grid.z > 65535) refuse("too large a grid");
  const int shared = k.shared_bytes + static_cast<int>(m.dynamic_bytes);
  if (static_cast<int>(m.dynamic_bytes) > m.allowed_dynamic)
    refuse(std::to_string(m.dynamic_bytes) + " bytes of dynamic shared memory beside " +
           std::to_string(k.shared_bytes) + " static ones (" + std::to_string(shared) +
           "); at most " + std::to_string(m.allowed_dynamic) + " are allowed");
}

}  // namespace rf::ptx
