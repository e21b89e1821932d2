#include "kernel_builder.h"

#include <cctype>
#include <cstdlib>

#include "text.h"

namespace rf::ptx {
namespace {

int round_up(int n, int to) { return (n + to - 1) / to * to; }

// Bytes of a constant among the sources of an instruction, where it is not the instruction's type.
int source_bytes(const Inst& inst, const std::vector<std::string>& opcode, size_t source) {
  const std::string& op = opcode[0];
  const int own = size_of(inst.type);
  if ((op == "shl" || op == "shr") && source == 2) return 4;
  if (op == "shfl" || op == "redux" || op == "match") return 4;
  if (op == "vote") return source == 1 ? 0 : 4;
  if (op == "bfi" && source >= 3) return 4;
  if (op == "bfe" && source >= 2) return 4;
  if (op == "selp" && source == 3) return 0;
  if (op == "setp" && source == 3) return 0;
  if ((op == "mad") && opcode[1] == "wide" && source == 3) return 2 * own;
  if (inst.type == Type::kPred) return 0;
  return own;
}

}  // namespace

Declaration read_declaration(const std::string& text) {
  Declaration d;
  const std::vector<std::string> w = words(text);
  int count = 1;
  bool aligned = false;
  for (size_t i = 1; i + 1 < w.size(); ++i) {
    if (w[i] == ".align") {
      d.align = atoi(w[++i].c_str());
      aligned = true;
    } else if (const Type type = type_named(w[i].substr(1)); type != Type::kNone) {
      d.element_bytes = size_of(type);
    }
  }
  const size_t bracket = w.back().find('[');
  d.name = w.back().substr(0, bracket);
  if (bracket != std::string::npos) count = atoi(w.back().c_str() + bracket + 1);
  if (!aligned) d.align = d.element_bytes;
  d.bytes = d.element_bytes * count;
  return d;
}

KernelBuilder::KernelBuilder(Kernel& kernel, const Module& module,
                             const std::vector<std::string>& dynamic_shared_names)
    : kernel_(kernel), module_(module), dynamic_shared_names_(dynamic_shared_names), scopes_(1) {}

void KernelBuilder::param(const std::string& declaration) {
  if (trim(declaration).empty()) return;
  const Declaration d = read_declaration(declaration);
  const int offset = round_up(kernel_.param_bytes, d.align);
  kernel_.params.push_back({offset, d.bytes});
  kernel_.param_bytes = offset + d.bytes;
  symbols_[d.name] = static_cast<uint64_t>(offset);
}

void KernelBuilder::registers(const std::string& declaration) {
  const std::vector<std::string> w = words(declaration);
  const Type type = type_named(w[1].substr(1));
  const std::string& name = w[2];
  const size_t angle = name.find('<');
  if (angle == std::string::npos) {
    define(scopes_.back(), name, type);
    return;
  }
  const int count = atoi(name.c_str() + angle + 1);
  for (int i = 0; i < count; ++i)
    define(scopes_.back(), name.substr(0, angle) + std::to_string(i), type);
}

void KernelBuilder::variable(const std::string& declaration) {
  const Declaration d = read_declaration(declaration);
  const bool shared = declaration.compare(0, 7, ".shared") == 0;
  int& used = shared ? kernel_.shared_bytes : kernel_.local_bytes;
  used = round_up(used, d.align);
  symbols_[d.name] = static_cast<uint64_t>(used);
  used += d.bytes;
}

void KernelBuilder::label(const std::string& name) {
  labels_[name] = static_cast<uint32_t>(kernel_.code.size());
}

bool KernelBuilder::close_scope() {
  scopes_.pop_back();
  return !scopes_.empty();
}

void KernelBuilder::finish() {
  for (const auto& [pc, label] : branches_) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) throw Unsupported("no label " + label);
    kernel_.code[pc].target = found->second;
  }
}

void KernelBuilder::instruction(const std::string& text, const Origin& origin) {
  Inst inst;
  std::string rest = text;
  if (rest[0] == '@') {
    inst.guard_not = rest[1] == '!';
    const size_t name = inst.guard_not ? 2 : 1, end = rest.find_first_of(" \t");
    inst.guard = operand(rest.substr(name, end - name), 0);
    rest = trim(rest.substr(end));
  }
  const size_t end = rest.find_first_of(" \t");
  const std::vector<std::string> opcode = split(rest.substr(0, end), '.');
  const std::vector<std::string> texts =
      end == std::string::npos ? std::vector<std::string>() : split_operands(rest.substr(end));
  const std::string& op = opcode[0];
  inst.type = type_named(opcode.back());
  if (op == "bra") {
    branches_.emplace_back(kernel_.code.size(), texts[0]);
  } else if (op == "ld" || op == "st" || op == "atom" || op == "red") {
    memory_operands(inst, op, texts);
  } else if (op == "bar" || op == "barrier") {
    barrier_operands(inst, opcode, texts);
  } else if (op != "call" && !texts.empty()) {
    plain_operands(inst, opcode, texts);
  }
  decode(inst, opcode);
  kernel_.code.push_back(inst);
  kernel_.origin.push_back(origin);
}

Operand KernelBuilder::define(std::map<std::string, Operand>& scope, const std::string& name,
                              Type type) {
  Operand o;
  o.bytes = static_cast<uint8_t>(type == Type::kPred ? 0 : size_of(type));
  o.offset = kernel_.register_bytes;
  kernel_.register_bytes += round_up(type == Type::kPred ? 4 : kLanes * o.bytes, 64);
  scope[name] = o;
  return o;
}

Operand KernelBuilder::constant(uint64_t bits, int bytes) {
  const auto [found, is_new] = constants_.emplace(std::make_pair(bits, bytes),
                                                  static_cast<int32_t>(kernel_.constants.size()));
  if (is_new) {
    std::vector<uint8_t>& c = kernel_.constants;
    const uint8_t* source = reinterpret_cast<const uint8_t*>(&bits);
    for (int lane = 0; lane < kLanes; ++lane) c.insert(c.end(), source, source + bytes);
    c.resize((c.size() + 63) / 64 * 64);
  }
  Operand o;
  o.offset = found->second, o.bytes = static_cast<uint8_t>(bytes), o.constant = true;
  return o;
}

// Dynamic shared memory begins after the static variables, which are all declared before the code.
uint64_t KernelBuilder::address_of(const std::string& symbol) const {
  for (const std::string& dynamic : dynamic_shared_names_) {
    if (symbol == dynamic) return static_cast<uint64_t>(kernel_.dynamic_offset());
  }
  if (const auto found = symbols_.find(symbol); found != symbols_.end()) return found->second;
  if (const auto found = module_.variables.find(symbol); found != module_.variables.end())
    return reinterpret_cast<uint64_t>(found->second->bytes.data());
  throw Unsupported("unknown name " + symbol);
}

Operand KernelBuilder::operand(const std::string& text, int bytes) {
  if (text[0] == '!') throw Unsupported("negated operand " + text);
  if (text == "_") return {};  // a result nobody wants
  if (text[0] == '%') {
    for (size_t i = scopes_.size(); i-- > 0;) {
      const auto found = scopes_[i].find(text);
      if (found != scopes_[i].end()) return found->second;
    }
    const Operand o = define(scopes_[0], text, Type::kU32);  // %tid.x and the like
    kernel_.specials.push_back({text, o.offset});
    return o;
  }
  if (text.compare(0, 2, "0f") == 0 || text.compare(0, 2, "0d") == 0) {
    return constant(strtoull(text.c_str() + 2, nullptr, 16), text[1] == 'f' ? 4 : 8);
  }
  if (isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-') {
    const uint64_t bits = text[0] == '-' ? static_cast<uint64_t>(strtoll(text.c_str(), nullptr, 0))
                                         : strtoull(text.c_str(), nullptr, 0);
    if (bytes == 0) return constant(bits ? kAllLanes : 0, 4);  // a predicate
    return constant(bytes == 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1), bytes);
  }
  return constant(address_of(text), bytes);
}

std::vector<Operand> KernelBuilder::operands(const std::string& text, int bytes) {
  if (text[0] != '{') return {operand(text, bytes)};
  std::vector<Operand> all;
  for (const std::string& part : split_operands(text.substr(1, text.rfind('}') - 1)))
    all.push_back(operand(part, bytes));
  return all;
}

void KernelBuilder::memory_operands(Inst& inst, const std::string& op,
                                    const std::vector<std::string>& texts) {
  const size_t where = op == "ld" || op == "atom" ? 1 : 0;
  const std::string inside = texts[where].substr(1, texts[where].size() - 2);
  const size_t plus = inside.find('+');
  inst.s[0] = operand(trim(inside.substr(0, plus)), 8);
  if (plus != std::string::npos) inst.offset = strtoll(inside.c_str() + plus + 1, nullptr, 0);
  const int bytes = size_of(inst.type);
  if (op == "ld") {
    const std::vector<Operand> to = operands(texts[0], bytes);
    for (size_t i = 0; i < to.size(); ++i) inst.d[i] = to[i];
    inst.width = static_cast<uint8_t>(to.size());
  } else if (op == "st") {
    const std::vector<Operand> from = operands(texts[1], bytes);
    for (size_t i = 0; i < from.size(); ++i) inst.s[1 + i] = from[i];
    inst.width = static_cast<uint8_t>(from.size());
  } else {
    if (op == "atom") inst.d[0] = operand(texts[0], bytes);
    for (size_t i = where + 1; i < texts.size(); ++i) inst.s[i - where] = operand(texts[i], bytes);
  }
}

void KernelBuilder::barrier_operands(Inst& inst, const std::vector<std::string>& opcode,
                                     const std::vector<std::string>& texts) {
  if (opcode[1] == "red") {  // bar.red.or.pred p, 0, q
    inst.d[0] = operand(texts[0], opcode[2] == "popc" ? 4 : 0);
    inst.s[0] = operand(texts[1], 4);
    if (texts.size() != 3) throw Unsupported("a barrier of some threads");
    inst.s[1] = operand(texts[2], 0);
  } else {  // bar.sync 0;  bar.warp.sync mask
    if (texts.size() != 1) throw Unsupported("a barrier of some threads");
    inst.s[0] = operand(texts[0], 4);
  }
}

void KernelBuilder::plain_operands(Inst& inst, const std::vector<std::string>& opcode,
                                   const std::vector<std::string>& texts) {
  // One destination, several in braces, or "d|p" of a shuffle.
  const size_t bar = texts[0].find('|');
  if (bar != std::string::npos) {
    inst.d[0] = operand(texts[0].substr(0, bar), 4);
    inst.d[1] = operand(texts[0].substr(bar + 1), 0);
  } else {
    const std::vector<Operand> to = operands(texts[0], 0);
    for (size_t i = 0; i < to.size() && i < 4; ++i) inst.d[i] = to[i];
    inst.width = static_cast<uint8_t>(to.size());
  }
  size_t k = 0;
  for (size_t i = 1; i < texts.size(); ++i) {
    for (const Operand& o : operands(texts[i], source_bytes(inst, opcode, i))) {
      if (k == 5) throw Unsupported("too many operands");
      inst.s[k++] = o;
    }
  }
}

}  // namespace rf::ptx
