// Runs a kernel: blocks one after the other, the warps of a block in turns between barriers. Lanes
// have program counters of their own; of those that can go on, the ones furthest behind go first,
// so that lanes meet again where branches join (nvcc lays code out in that order).
#include "machine.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace rf::ptx {
namespace {

constexpr uint32_t kNever = 0xffffffffu;
constexpr uint8_t kPoison = 0xff;  // NaN as a float, huge as an unsigned integer

class Runner {
 public:
  explicit Runner(Machine& machine)
      : m_(machine), k_(*machine.kernel), random_(machine.options.seed) {
    threads_ = static_cast<uint32_t>(m_.block_dim.count());
    const uint32_t warps = (threads_ + kLanes - 1) / kLanes;
    block_.machine = &m_;
    block_.shared.resize(static_cast<size_t>(k_.dynamic_offset()) + m_.dynamic_bytes);
    registers_.resize(static_cast<size_t>(warps) * k_.register_bytes + 64);
    local_.resize(static_cast<size_t>(warps) * kLanes * k_.local_bytes);
    const uintptr_t misaligned = reinterpret_cast<uintptr_t>(registers_.data()) % 64;
    uint8_t* aligned = registers_.data() + (64 - misaligned) % 64;
    for (uint32_t i = 0; i < warps; ++i) {
      Warp w;
      w.block = &block_;
      w.registers = aligned + static_cast<size_t>(i) * k_.register_bytes;
      w.constants = k_.constants.data();
      w.local = local_.data() + static_cast<size_t>(i) * kLanes * k_.local_bytes;
      w.first_thread = i * kLanes;
      block_.warps.push_back(w);
      order_.push_back(i);
    }
  }

  void run_block() {
    std::fill(block_.shared.begin(), block_.shared.end(), kPoison);
    std::fill(local_.begin(), local_.end(), kPoison);
    m_.block_epoch = ++m_.epoch;
    if (m_.options.traffic) m_.memory->begin_block(m_.options.l1_bytes);
    for (Warp& w : block_.warps) start(w);
    do {
      if (m_.options.seed) std::shuffle(order_.begin(), order_.end(), random_);
      for (const uint32_t i : order_) run_warp(block_.warps[i]);
    } while (open_barrier());
  }

 private:
  Machine& m_;
  const Kernel& k_;
  std::mt19937 random_;
  Block block_;
  std::vector<uint8_t> registers_, local_;
  std::vector<uint32_t> order_;
  uint32_t threads_ = 0;
  uint64_t executed_ = 0;

  void start(Warp& w) {
    const uint32_t here = std::min<uint32_t>(threads_ - w.first_thread, kLanes);
    w.live = here == kLanes ? kAllLanes : (1u << here) - 1;
    w.at_barrier = w.waiting = 0;
    memset(w.pc, 0, sizeof(w.pc));
    for (const SpecialRegister& s : k_.specials) {
      uint32_t* lanes = reinterpret_cast<uint32_t*>(w.registers + s.offset);
      for (uint32_t l = 0; l < kLanes; ++l) lanes[l] = special(s.name, w.first_thread + l, l);
    }
  }

  uint32_t special(const std::string& name, uint32_t thread, uint32_t lane) const {
    const auto axis = [&](const Dim3& d) {
      return name.back() == 'x' ? d.x : name.back() == 'y' ? d.y : d.z;
    };
    const Dim3& d = m_.block_dim;
    if (name.compare(0, 5, "%tid.") == 0)
      return axis({thread % d.x, thread / d.x % d.y, thread / d.x / d.y});
    if (name.compare(0, 6, "%ntid.") == 0) return axis(d);
    if (name.compare(0, 7, "%ctaid.") == 0) return axis(m_.block_index);
    if (name.compare(0, 8, "%nctaid.") == 0) return axis(m_.grid);
    if (name == "%laneid") return lane;
    if (name == "%lanemask_lt") return (1u << lane) - 1;
    if (name == "%lanemask_le") return (2u << lane) - 1;
    if (name == "%lanemask_eq") return 1u << lane;
    if (name == "%lanemask_gt") return ~((2u << lane) - 1);
    if (name == "%lanemask_ge") return ~((1u << lane) - 1);
    throw Unsupported("the PTX interpreter does not know the register " + name);
  }

  static void set_pc(Warp& w, uint32_t lanes, uint32_t pc) {
    for (; lanes; lanes &= lanes - 1) w.pc[__builtin_ctz(lanes)] = pc;
  }

  // Until every lane has ended or waits.
  void run_warp(Warp& w) {
    for (;;) {
      const uint32_t ready = w.live & ~w.at_barrier & ~w.waiting;
      if (!ready) return;
      uint32_t pc = kNever, next = kNever, mask = 0;
      for (uint32_t left = ready; left; left &= left - 1)
        pc = std::min(pc, w.pc[__builtin_ctz(left)]);
      for (uint32_t left = ready; left; left &= left - 1) {
        const int l = __builtin_ctz(left);
        if (w.pc[l] == pc) {
          mask |= 1u << l;
        } else {
          next = std::min(next, w.pc[l]);
        }
      }
      run_lanes(w, mask, pc, next);
    }
  }

  // The lanes of `mask` from `pc`, until they part, wait, end, or come to `next`, where others are.
  void run_lanes(Warp& w, uint32_t mask, uint32_t pc, uint32_t next) {
    while (pc < next) {
      const Inst& inst = k_.code[pc];
      w.current = pc;
      w.counters = &m_.counters.inst[pc];
      uint32_t lanes = mask;
      if (inst.guard) {
        const uint32_t p = w.predicate(inst.guard);
        lanes &= inst.guard_not ? ~p : p;
      }
      ++w.counters->warps;
      w.counters->lanes += static_cast<uint64_t>(__builtin_popcount(lanes));
      if (inst.run == nullptr)
        fault(w, __builtin_ctz(mask), "the PTX interpreter does not know this instruction");
      switch (inst.kind) {
        case Inst::Kind::kPlain:
          if (lanes) inst.run(w, inst, lanes);
          ++pc;
          continue;
        case Inst::Kind::kBranch:
          if (lanes == mask) {
            if (inst.target <= pc) check_budget(w, pc - inst.target);
            pc = inst.target;
          } else if (lanes == 0) {
            ++pc;
          } else {
            ++w.counters->divergent;
            check_budget(w, 1);
            set_pc(w, lanes, inst.target);
            set_pc(w, mask & ~lanes, pc + 1);
            return;
          }
          continue;
        case Inst::Kind::kExit:
          w.live &= ~lanes;
          mask &= ~lanes;
          if (!mask) return;
          ++pc;
          continue;
        case Inst::Kind::kBarrier:
          if (lanes) arrive(w, inst, lanes, pc);
          set_pc(w, mask, pc + 1);
          return;
        case Inst::Kind::kCollective:
          if (!lanes) {
            ++pc;
            continue;
          }
          if (!collective(w, inst, lanes, mask, pc)) return;
          ++pc;
          continue;
      }
    }
    set_pc(w, mask, pc);
  }

  void check_budget(const Warp& w, uint64_t loop_length) {
    executed_ += loop_length + 1;
    if (executed_ > m_.options.most_instructions)
      fault(w, 0, "the launch seems to hang: more instructions than most_instructions");
  }

  // Whether the lanes of `mask` go on together at once.
  bool collective(Warp& w, const Inst& inst, uint32_t lanes, uint32_t mask, uint32_t pc) {
    uint32_t here = lanes;
    for (uint32_t left = w.waiting; left; left &= left - 1) {
      const int l = __builtin_ctz(left);
      if (w.pc[l] == pc) here |= 1u << l;
    }
    const int first = __builtin_ctz(lanes);
    const uint32_t members = w.in<uint32_t>(inst.s[4])[first];
    for (uint32_t left = lanes; left; left &= left - 1) {
      const int l = __builtin_ctz(left);
      if (!((w.in<uint32_t>(inst.s[4])[l] >> l) & 1))
        fault(w, l, "a lane that is not in the mask of its own collective");
    }
    if (const uint32_t ended = members & ~w.live)
      fault(w, first,
            "lane " + std::to_string(__builtin_ctz(ended)) +
                " is in the mask of this collective, but has exited");
    if ((here & members) != members) {
      w.waiting |= lanes;
      set_pc(w, lanes, pc);
      set_pc(w, mask & ~lanes, pc + 1);
      ++w.counters->divergent;
      return false;
    }
    inst.run(w, inst, here);
    w.waiting &= ~here;
    set_pc(w, here | mask, pc + 1);
    return here == mask;
  }

  void arrive(Warp& w, const Inst& inst, uint32_t lanes, uint32_t pc) {
    const int first = __builtin_ctz(lanes);
    if (w.in<uint32_t>(inst.s[0])[first] != 0)
      throw Unsupported("the PTX interpreter knows barrier 0 only");
    if (block_.barrier_used && block_.barrier_pc != pc)
      fault(w, first,
            "threads wait at different barriers: the other is at " +
                m_.module->place_of(k_.origin[block_.barrier_pc]));
    if (lanes != w.live)
      fault(w, first,
            "a barrier that only part of a warp reaches: " +
                std::to_string(__builtin_popcount(lanes)) + " of " +
                std::to_string(__builtin_popcount(w.live)) + " lanes");
    block_.barrier_used = true, block_.barrier_pc = pc;
    w.at_barrier |= lanes;
    if (inst.reduction == Inst::Reduction::kNone) return;
    const uint32_t p = w.predicate(inst.s[1]) & lanes;
    block_.any |= p != 0;
    block_.all &= p == lanes;
    block_.count += static_cast<uint32_t>(__builtin_popcount(p));
  }

  // When all warps stand still. False: the block has ended.
  bool open_barrier() {
    uint32_t live = 0, waiting = 0;
    for (Warp& w : block_.warps) {
      live += static_cast<uint32_t>(__builtin_popcount(w.live));
      waiting += static_cast<uint32_t>(__builtin_popcount(w.at_barrier));
      const uint32_t stuck = w.live & ~w.at_barrier;
      if (!stuck) continue;
      w.current = w.pc[__builtin_ctz(stuck)];
      fault(w, __builtin_ctz(stuck), "a collective that not all lanes of its mask reach");
    }
    if (live == 0) return false;
    const Inst& inst = k_.code[block_.barrier_pc];
    for (Warp& w : block_.warps) {
      if (waiting != threads_) {
        w.current = block_.barrier_pc;
        fault(w, 0,
              "a barrier that not all threads of the block reach: " + std::to_string(waiting) +
                  " of " + std::to_string(threads_) + " wait, the others have exited");
      }
      reduce(w, inst);
      w.at_barrier = 0;
    }
    if (!inst.unordered) ++m_.epoch;
    block_.barrier_used = false;
    block_.any = false, block_.all = true, block_.count = 0;
    return true;
  }

  void reduce(Warp& w, const Inst& inst) {
    switch (inst.reduction) {
      case Inst::Reduction::kNone:
        return;
      case Inst::Reduction::kOr:
        return w.set_predicate(inst.d[0], block_.any ? kAllLanes : 0, w.at_barrier);
      case Inst::Reduction::kAnd:
        return w.set_predicate(inst.d[0], block_.all ? kAllLanes : 0, w.at_barrier);
      case Inst::Reduction::kPopc:
        for (int l = 0; l < kLanes; ++l) w.out<uint32_t>(inst.d[0])[l] = block_.count;
    }
  }
};

}  // namespace

void Machine::launch() {
  check_configuration(*this);
  const bool strides = kernel->reads("%nctaid.x");
  if (options.grid_cap && strides) grid.x = std::min(grid.x, options.grid_cap);
  counters.kernel = kernel, counters.module = module, counters.function = memory->function();
  counters.grid = grid, counters.block = block_dim;
  counters.dynamic_shared = static_cast<int>(dynamic_bytes);
  counters.inst.assign(kernel->code.size(), {});
  memory->begin_launch();
  launch_epoch = ++epoch;
  Runner runner(*this);
  std::vector<uint32_t> order(grid.count());
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 random(options.seed);
  if (options.seed) std::shuffle(order.begin(), order.end(), random);
  for (const uint32_t i : order) {
    block_number = i;
    block_index = {i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y};
    runner.run_block();
  }
  for (const Array& array : memory->arrays()) {
    if (array.load.requests || array.store.requests)
      counters.arrays.push_back({array.argument, array.load, array.store});
  }
}

}  // namespace rf::ptx
