// Builds one kernel while its PTX is read: registers, variables, constants, labels, instructions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program.h"

namespace rf::ptx {

class KernelBuilder {
 public:
  KernelBuilder(Kernel& kernel, const Module& module,
                const std::vector<std::string>& dynamic_shared_names);

  void param(const std::string& declaration);      // .param .align 8 .b8 name[24]
  void registers(const std::string& declaration);  // .reg .b32 %r<373>   or   .reg .b32 %temp
  void variable(const std::string& declaration);   // .shared .align 4 .b8 name[4096]
  void label(const std::string& name);
  void instruction(const std::string& text, const Origin& origin);
  void open_scope() { scopes_.emplace_back(); }
  bool close_scope();  // false: that was the kernel's own
  void finish();       // branches find their labels

 private:
  Kernel& kernel_;
  const Module& module_;
  const std::vector<std::string>& dynamic_shared_names_;
  std::vector<std::map<std::string, Operand>> scopes_;
  std::map<std::string, uint64_t> symbols_;
  std::map<std::string, uint32_t> labels_;
  std::vector<std::pair<size_t, std::string>> branches_;
  std::map<std::pair<uint64_t, int>, int32_t> constants_;

  Operand define(std::map<std::string, Operand>& scope, const std::string& name, Type type);
  Operand constant(uint64_t bits, int bytes);
  uint64_t address_of(const std::string& symbol) const;
  Operand operand(const std::string& text, int bytes);
  std::vector<Operand> operands(const std::string& text, int bytes);  // {a, b} or a
  void memory_operands(Inst& inst, const std::string& op, const std::vector<std::string>& texts);
  void barrier_operands(Inst& inst, const std::vector<std::string>& opcode,
                        const std::vector<std::string>& texts);
  void plain_operands(Inst& inst, const std::vector<std::string>& opcode,
                      const std::vector<std::string>& texts);
};

// ".align 8 .b8 name[24]" without its first word: what a declaration says.
struct Declaration {
  std::string name;
  int align = 1, bytes = 0;
  int element_bytes = 1;
};
Declaration read_declaration(const std::string& text);

}  // namespace rf::ptx
