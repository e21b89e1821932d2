#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#if !(defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)))
#define RF_SIMT_UCONTEXT 1  // may also be defined to try it
#endif
#ifdef RF_SIMT_UCONTEXT
#include <ucontext.h>
#endif

namespace rf::simt {

namespace {

#ifdef RF_SIMT_ASAN
constexpr size_t kStackBytes =
    512 * 1024;  // AddressSanitizer puts redzones around every local array
#else
constexpr size_t kStackBytes = 128 * 1024;
#endif

}  // namespace

Stack* StackPool::acquire() {
  if (free_.empty()) return map();
  Stack* stack = free_.back();
  free_.pop_back();
  return stack;
}

Stack* StackPool::map() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* base = mmap(nullptr, kStackBytes + page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  mprotect(base, page, PROT_NONE);
  Stack* stack = new Stack;
  stack->bottom = static_cast<char*>(base) + page;
  // Tops at the same page offset would all compete for the same cache sets.
  stack->top = stack->bottom + kStackBytes - (mapped_++ % 32) * 128;
  return stack;
}

#ifndef RF_SIMT_UCONTEXT

#if defined(__x86_64__)

// Callee-saved registers go to the old stack, and come from the new one.
asm(R"(
.pushsection .text
.globl rf_simt_switch
.hidden rf_simt_switch
.type rf_simt_switch, @function
.p2align 4
rf_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size rf_simt_switch, . - rf_simt_switch
.popsection
)");

void* prepare_fiber(const Stack& stack, FiberEntry entry) {
  void** top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack.top) & ~uintptr_t{15});
  *--top = nullptr;  // entry's return address: it never returns, and unwinders stop here
  *--top = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  return top;
}

#else  // __aarch64__

asm(R"(
.pushsection .text
.globl rf_simt_switch
.hidden rf_simt_switch
.type rf_simt_switch, %function
.p2align 4
rf_simt_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size rf_simt_switch, . - rf_simt_switch
.popsection
)");

void* prepare_fiber(const Stack& stack, FiberEntry entry) {
  char* top =
      reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(stack.top) & ~uintptr_t{15}) - 160;
  memset(top, 0, 160);
  memcpy(top + 88, &entry, sizeof(entry));  // x30: where `ret` goes
  return top;
}

#endif

#else  // RF_SIMT_UCONTEXT: slower (it saves the signal mask with a system call), but everywhere

extern "C" void rf_simt_switch(void** save, void* resume) {
  ucontext_t here;  // lives on the stack being suspended
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(resume));
}

void* prepare_fiber(const Stack& stack, FiberEntry entry) {
  const size_t bytes = (sizeof(ucontext_t) + 63) & ~size_t{63};
  char* top =
      reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(stack.top) & ~uintptr_t{63}) - bytes;
  ucontext_t* context = new (top) ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = stack.bottom;
  context->uc_stack.ss_size = static_cast<size_t>(top - stack.bottom);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

#endif

}  // namespace rf::simt
