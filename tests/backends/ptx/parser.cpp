// From PTX text to modules. Knows what nvcc writes, not all of the PTX grammar; what is not known
// is an error, in instructions one that waits until the instruction is reached.
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "kernel_builder.h"
#include "program.h"
#include "text.h"

namespace rf::ptx {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text), module_(new Module) {}

  std::unique_ptr<Module> run() {
    read_file_names();
    while (skip_blank()) {
      if (looking_at(".section")) {
        until('}');
      } else if (looking_at(".file")) {
        until('\n');
      } else if (looking_at(".version") || looking_at(".target") || looking_at(".address_size")) {
        until('\n');
      } else if (starts_kernel()) {
        kernel();
      } else if (looking_at(".extern .shared")) {
        dynamic_shared_names_.push_back(read_declaration(until(';')).name);
      } else if (looking_at(".visible .global") || looking_at(".global") || looking_at(".const") ||
                 looking_at(".visible .const")) {
        variable(until(';'));
      } else {
        throw Unsupported("PTX line " + std::to_string(line_number()) + ": " +
                          text_.substr(at_, 80));
      }
    }
    return std::move(module_);
  }

 private:
  const std::string& text_;
  size_t at_ = 0;
  size_t counted_to_ = 0;
  int lines_ = 1;  // at counted_to_
  std::unique_ptr<Module> module_;
  std::vector<std::string> dynamic_shared_names_;

  bool skip_blank() {
    while (at_ < text_.size()) {
      if (isspace(static_cast<unsigned char>(text_[at_])) || text_[at_] == 0) {
        ++at_;
      } else if (looking_at("//")) {
        until('\n');
      } else {
        return true;
      }
    }
    return false;
  }
  bool looking_at(const char* what) const { return text_.compare(at_, strlen(what), what) == 0; }
  bool starts_kernel() const {
    return looking_at(".entry") || looking_at(".visible .entry") || looking_at(".weak .entry");
  }
  std::string until(char end) {
    const size_t stop = text_.find(end, at_);
    if (stop == std::string::npos) throw Unsupported(std::string("PTX ends before a ") + end);
    std::string s = text_.substr(at_, stop - at_);
    at_ = stop + 1;
    return s;
  }
  int line_number() {
    for (; counted_to_ < at_; ++counted_to_) lines_ += text_[counted_to_] == '\n';
    return lines_;
  }

  // They come after the code that refers to them: .file 2 "/…/csrc/common/dtype.h"
  void read_file_names() {
    for (size_t i = text_.find(".file"); i != std::string::npos; i = text_.find(".file", i + 1)) {
      const size_t open = text_.find('"', i), close = text_.find('"', open + 1);
      if (close == std::string::npos || text_.find('\n', i) < open) continue;
      module_->files[atoi(text_.c_str() + i + 5)] = text_.substr(open + 1, close - open - 1);
    }
  }

  void variable(const std::string& s) {  // .global .align 4 .b8 table[24] = {1, 2}
    const size_t equals = s.find('=');
    const Declaration d = read_declaration(s.substr(s.find(".visible") == 0 ? 8 : 0, equals));
    auto made = std::make_unique<Variable>();
    made->constant = s.find(".const") != std::string::npos;
    made->bytes.resize(static_cast<size_t>(d.bytes) + 16);
    if (equals != std::string::npos) {
      const size_t brace = s.find('{', equals);
      const std::string values = brace == std::string::npos
                                     ? s.substr(equals + 1)
                                     : s.substr(brace + 1, s.find('}') - brace - 1);
      size_t i = 0;
      for (const std::string& value : split(values, ',')) {
        const uint64_t bits = strtoull(trim(value).c_str(), nullptr, 0);
        memcpy(made->bytes.data() + d.element_bytes * i++, &bits, d.element_bytes);
      }
    }
    module_->variables[d.name] = std::move(made);
  }

  void kernel() {
    module_->kernels.emplace_back(new Kernel);
    Kernel& kernel = *module_->kernels.back();
    KernelBuilder builder(kernel, *module_, dynamic_shared_names_);
    kernel.symbol = words(until('(')).back();
    kernel.name = readable_name(kernel.symbol);
    for (const std::string& declaration : split(until(')'), ',')) builder.param(declaration);
    const std::vector<std::string> directives = words(until('{'));
    for (size_t i = 0; i + 1 < directives.size(); ++i) {
      if (directives[i] != ".maxntid") continue;  // ".maxntid 256, 1, 1"
      kernel.max_threads = 1;
      for (size_t k = i + 1; k < directives.size() && isdigit(directives[k][0]); ++k)
        kernel.max_threads *= atoi(directives[k].c_str());
    }
    body(builder);
    builder.finish();
  }

  void body(KernelBuilder& builder) {
    Origin origin;
    while (skip_blank()) {
      const char c = text_[at_];
      if (c == '{') {
        ++at_;
        builder.open_scope();
      } else if (c == '}') {
        ++at_;
        if (!builder.close_scope()) return;
      } else if (looking_at(".loc ") || looking_at(".loc\t")) {
        location(until('\n'), origin);
      } else if (looking_at(".pragma")) {
        until(';');
      } else if (looking_at(".reg")) {
        builder.registers(until(';'));
      } else if (looking_at(".shared") || looking_at(".local")) {
        builder.variable(until(';'));
      } else if (c == '.') {
        throw Unsupported("PTX line " + std::to_string(line_number()) + ": " +
                          text_.substr(at_, 80));
      } else {
        statement(builder, origin);
      }
    }
    throw Unsupported("PTX: a kernel without end");
  }

  void statement(KernelBuilder& builder, Origin& origin) {
    const size_t end = text_.find_first_of(";:\n", at_);
    if (end != std::string::npos && text_[end] == ':' && text_[end + 1] != ':') {
      builder.label(trim(until(':')));
      return;
    }
    origin.ptx_line = line_number();
    origin.text = trim(until(';'));
    try {
      builder.instruction(origin.text, origin);
    } catch (const Unsupported& e) {
      throw Unsupported("PTX line " + std::to_string(origin.ptx_line) + ", " + origin.text + ": " +
                        e.what());
    }
  }

  // .loc 3 80 5, function_name $L__info_string0, inlined_at 1 43 3
  // Of code from the headers of toolkit and compiler, the place it was inlined at says more. Line 0
  // means none: what came before still holds.
  void location(const std::string& s, Origin& origin) const {
    const std::vector<std::string> w = words(s);
    if (w.size() < 3 || atoi(w[2].c_str()) == 0) return;
    origin.file = atoi(w[1].c_str()), origin.line = atoi(w[2].c_str());
    const auto found = module_->files.find(origin.file);
    const bool foreign =
        found != module_->files.end() &&
        (found->second.find("/targets/") != std::string::npos || found->second.find("/usr/") == 0);
    for (size_t i = 3; foreign && i + 2 < w.size(); ++i) {
      if (w[i] != "inlined_at") continue;
      origin.file = atoi(w[i + 1].c_str()), origin.line = atoi(w[i + 2].c_str());
    }
  }
};

}  // namespace

std::unique_ptr<Module> parse(const std::string& text) { return Parser(text).run(); }

bool Kernel::reads(const std::string& special) const {
  for (const SpecialRegister& s : specials) {
    if (s.name == special) return true;
  }
  return false;
}

std::string Module::place_of(const Origin& origin) const {
  const auto found = files.find(origin.file);
  if (found == files.end()) return "?";
  return base_name(found->second) + ":" + std::to_string(origin.line);
}

}  // namespace rf::ptx
