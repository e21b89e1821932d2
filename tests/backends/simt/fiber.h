// Fibers: stacks with a guard page and a context switch of a few
// nanoseconds. The scheduler (block.cpp) runs every thread of a block
// on one of these; a suspended fiber is just its saved stack pointer.
#pragma once

#include <cstddef>
#include <vector>

namespace rf::simt {

struct Stack {
  char* bottom = nullptr;  // lowest usable byte; the guard page is below it
  char* top = nullptr;
};

// Stacks are mapped on demand and kept for the life
// of the process: at most one per thread of a block.
class StackPool {
 public:
  Stack* acquire();
  void release(Stack* stack) { free_.push_back(stack); }

 private:
  Stack* map();

  std::vector<Stack*> free_;
  int mapped_ = 0;
};

using FiberEntry = void (*)();

// A context that calls entry() when first switched to; entry must never return.
void* prepare_fiber(const Stack& stack, FiberEntry entry);

// Saves the running context to *save and continues `resume`.
extern "C" void rf_simt_switch(void** save, void* resume);

}  // namespace rf::simt
