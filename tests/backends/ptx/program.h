// What PTX text becomes: modules of kernels of decoded instructions. README.md has the whole
// picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace rf::ptx {

constexpr int kLanes = 32;
constexpr uint32_t kAllLanes = 0xffffffffu;

// A mistake of the kernel or of its launch; becomes a CUDA error.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// PTX that this interpreter does not know. Never ignored.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Type : uint8_t {
  kNone,
  kPred,
  kU8,
  kS8,
  kU16,
  kS16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kBF16,
  kF32,
  kF64
};
int size_of(Type type);                    // in bytes
Type type_named(const std::string& name);  // "s32"; b32 counts as u32; kNone if it is no type
inline bool is_signed(Type t) {
  return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64;
}

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam, kConst };

// Generic addresses of the spaces that are not global lie above every host pointer.
constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
constexpr uint64_t kLocalWindow = uint64_t{2} << 56;
constexpr uint64_t kParamWindow = uint64_t{3} << 56;
constexpr uint64_t kWindowMask = uint64_t{0xff} << 56;

// What an instruction counts as.
enum class Class : uint8_t {
  kLoadGlobal,
  kStoreGlobal,
  kLoadGeneric,
  kStoreGeneric,
  kLoadShared,
  kStoreShared,
  kAtomic,
  kParam,
  kLocal,
  kFp32,
  kFp64,
  kInt32,
  kInt64,
  kConvert,
  kMove,
  kPredicate,
  kBranch,
  kBarrier,
  kCollective,
  kExit,
  kCount
};
constexpr int kClasses = static_cast<int>(Class::kCount);
extern const char* const kClassNames[kClasses];

// A register (32 lanes side by side in the warp's register file), or a constant (the same, in the
// kernel's constants). A predicate is one uint32_t, a bit per lane, and has bytes = 0.
struct Operand {
  int32_t offset = -1;
  uint8_t bytes = 0;  // per lane
  bool constant = false;
  explicit operator bool() const { return offset >= 0; }
};

struct Warp;
struct Inst;
using Handler = void (*)(Warp&, const Inst&, uint32_t mask);

// What the machine needs to run an instruction; its text and place are in `Origin`.
struct Inst {
  enum class Kind : uint8_t { kPlain, kBranch, kExit, kBarrier, kCollective };
  Kind kind = Kind::kPlain;
  Class cls = Class::kInt32;
  Space space = Space::kGeneric;
  Type type = Type::kNone;
  uint8_t width = 1;             // of vector accesses
  bool read_only_cache = false;  // ld.global.nc
  bool saturate = false;
  bool guard_not = false;
  enum class Reduction : uint8_t { kNone, kOr, kAnd, kPopc } reduction = Reduction::kNone;
  bool unordered = false;  // a barrier that was made to order nothing: mutants only
  uint32_t target = 0;     // of a branch
  Handler run = nullptr;   // null: not known, an error when it is reached
  int64_t offset = 0;      // of an address
  Operand guard;
  Operand d[4], s[5];  // destinations, sources
};

struct Origin {
  int file = 0, line = 0;  // of the source, from .loc
  int ptx_line = 0;
  std::string text;
};

struct Param {
  int offset, bytes;
};

struct SpecialRegister {
  std::string name;
  int32_t offset;
};

struct Kernel {
  std::string symbol, name;  // as mangled, and readable
  std::vector<Param> params;
  int param_bytes = 0;
  std::vector<Inst> code;
  std::vector<Origin> origin;
  int register_bytes = 0;  // of a warp
  std::vector<uint8_t> constants;
  std::vector<SpecialRegister> specials;
  int shared_bytes = 0;  // static
  int local_bytes = 0;
  int max_threads = 0;  // __launch_bounds__; 0: none
  int dynamic_offset() const { return (shared_bytes + 15) / 16 * 16; }
  bool reads(const std::string& special) const;  // such as "%nctaid.x"
};

// A variable of the module: .global or .const
struct Variable {
  std::vector<uint8_t> bytes;
  bool constant;
};

struct Module {
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::map<std::string, std::unique_ptr<Variable>> variables;
  std::map<int, std::string> files;
  std::string place_of(const Origin& origin) const;  // "row_selection.h:80"
};

std::unique_ptr<Module> parse(const std::string& text);

// Sets run, kind and class of an instruction from its opcode, split at the dots:
// {"setp", "lt", "s32"}.
void decode(Inst& inst, const std::vector<std::string>& opcode);

}  // namespace rf::ptx
