#include "block.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "checks.h"
#include "sanitizer.h"
#include "shared.h"

// simt.h declares these const: no kernel may change them, and to a kernel
// they never change. (They do between threads, but a thread only ever
// sees its own.) So compilers may keep them in registers.
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace rf::simt {

Block block;

namespace {

StackPool stacks;
const Launch* launch = nullptr;
bool failed = false;
char failure_text[320];  // and the context of it in rf::error_buffer()
const void* failing_code;

// The OS thread's own context, while a block runs.
void* main_context;
SanitizerFiber main_sanitizer;
void* main_sanitizer_stack;

// Runnable threads, first come first served; every thread is in it at most once.
uint16_t queue[kMaxThreads];
unsigned queue_head, queue_tail;

uint64_t seed = 1;
uint64_t random_state;
bool in_order;  // seed 0

void enqueue_all() {
  for (int i = 0; i < block.size; ++i) queue[i] = static_cast<uint16_t>(i);
  if (!in_order) {
    for (int i = block.size - 1; i > 0; --i) {
      const int j = static_cast<int>((static_cast<uint64_t>(next_random()) * (i + 1)) >> 32);
      const uint16_t swapped = queue[i];
      queue[i] = queue[j];
      queue[j] = swapped;
    }
  }
  queue_head = 0;
  queue_tail = static_cast<unsigned>(block.size);
}

Thread* dequeue() {
  if (queue_head == queue_tail) return nullptr;
  return &block.threads[queue[queue_head++ % kMaxThreads]];
}

void set_current(Thread* thread) {
  block.current = thread;
  threadIdx = thread->index;
}

[[noreturn]] void fiber_main();

// Leaves the running context (saved to *save) for `next`, giving it a stack if it has none yet.
void switch_to(void** save, void** save_sanitizer, Thread* next) {
  if (next->stack == nullptr) {
    next->stack = stacks.acquire();
    next->context = prepare_fiber(*next->stack, fiber_main);
  }
  set_current(next);
  start_switch(save_sanitizer, next->stack->bottom, next->stack->top);
  rf_simt_switch(save, next->context);
  finish_switch(save_sanitizer != nullptr ? *save_sanitizer : nullptr, nullptr);
}

[[noreturn]] void switch_to_main() {
  void* never;
  start_switch(nullptr, main_sanitizer.bottom, main_sanitizer.top);
  rf_simt_switch(&never, main_context);
  abort();
}

// Nobody can run and not everybody is done: count who waits where.
[[noreturn]] void fail_deadlock() {
  char text[240];
  size_t used = 0;
  bool counted[kMaxThreads] = {};
  bool barrier = false;
  for (int i = 0; i < block.size; ++i) {
    const Thread& a = block.threads[i];
    if (counted[i] || a.wait == Wait::kExited) continue;
    barrier = barrier || a.wait == Wait::kBarrier;
    int same = 0;
    for (int j = i; j < block.size; ++j) {
      const Thread& b = block.threads[j];
      if (b.wait == Wait::kExited || b.op != a.op || b.line != a.line) continue;
      counted[j] = true;
      ++same;
    }
    if (used + 100 < sizeof(text)) {
      used += static_cast<size_t>(snprintf(
          text + used, sizeof(text) - used, "%s%d of %d wait in %s (%.40s:%d)",
          used > 0 ? ", " : "", same, block.size, op_name(a.op), base_name(a.file), a.line));
    }
  }
  if (block.exited > 0) {
    snprintf(text + used, sizeof(text) - used, ", %d have exited", block.exited);
  }
  fail_launch("%s that not all its threads reach: %s", barrier ? "barrier" : "warp collective",
              text);
}

// Runs threads on this fiber's stack, one after the other, until one waits: then that one keeps the
// stack. Kernels without barriers so never switch.
void fiber_main() {
  finish_switch(nullptr, main_sanitizer.top == nullptr ? &main_sanitizer : nullptr);
  for (;;) {
    Thread* self = block.current;
    launch->run_thread(launch->kernel_and_arguments);
    flush_pending_race_check();
    self->wait = Wait::kExited;
    ++block.exited;
    block.warps[self->id / kWarpSize].exited |= 1u << (self->id % kWarpSize);
    Stack* stack = self->stack;
    self->stack = nullptr;
    Thread* next = dequeue();
    if (next != nullptr && next->stack == nullptr) {
      next->stack = stack;
      set_current(next);
      continue;
    }
    if (next == nullptr && block.exited != block.size) {
      self->stack = stack;
      fail_deadlock();
    }
    // This stack is free from here on, although we still
    // stand on it: nothing else runs before the switch.
    stacks.release(stack);
    if (next == nullptr) switch_to_main();
    void* never;
    switch_to(&never, nullptr, next);
  }
}

}  // namespace

uint32_t next_random() {  // xorshift64*
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return static_cast<uint32_t>((random_state * 0x2545F4914F6CDD1Dull) >> 32);
}

void set_seed(uint64_t value) { seed = value; }
uint64_t get_seed() { return seed; }
bool in_kernel() { return launch != nullptr && block.current != nullptr; }
const char* failure() { return failure_text; }
void set_failure_code(const void* code) { failing_code = code; }
const void* failure_code() { return failing_code; }

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

const char* op_name(Op op) {
  static const char* const names[] = {
      "__syncthreads",     "__syncthreads_or",  "__syncthreads_and", "__syncthreads_count",
      "__syncwarp",        "__ballot_sync",     "__any_sync",        "__all_sync",
      "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",
      "__reduce_add_sync", "__reduce_min_sync", "__reduce_min_sync", "__reduce_max_sync",
      "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync"};
  return names[static_cast<int>(op)];
}

void fail_launch(const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(failure_text, sizeof(failure_text), format, args);
  va_end(args);
  if (!in_kernel()) {  // host code of a .cu, found out by a sanitizer check
    fprintf(stderr, "simt: %s\n", failure_text);
    abort();
  }
  failed = true;
  switch_to_main();
}

void park(Wait wait, Op op, const char* file, int line) {
  flush_pending_race_check();
  Thread* self = block.current;
  self->wait = wait;
  self->op = op;
  self->file = file;
  self->line = line;
  Thread* next = dequeue();
  if (next == nullptr) fail_deadlock();
  if (next == self) return;
  switch_to(&self->context, &self->sanitizer_stack, next);
}

void make_runnable(Thread& thread) {
  thread.wait = Wait::kRunnable;
  queue[queue_tail++ % kMaxThreads] = thread.id;
}

int block_barrier(Op op, bool predicate, const char* file, int line) {
  block.votes += predicate;
  if (++block.arrived == block.size) {
    flush_pending_race_check();
    for (int i = 0; i < block.size; ++i) {
      Thread& other = block.threads[i];
      if (&other == block.current) continue;
      if (other.op != op || other.line != line ||
          (other.file != file && strcmp(other.file, file) != 0)) {
        fail_launch(
            "barrier that not all its threads reach: this thread is in %s (%.60s:%d), thread (%u, "
            "%u, %u) "
            "in %s (%.60s:%d)",
            op_name(op), base_name(file), line, other.index.x, other.index.y, other.index.z,
            op_name(other.op), base_name(other.file), other.line);
      }
      other.wait = Wait::kRunnable;
    }
    block.vote_result = block.votes;
    block.votes = 0;
    block.arrived = 0;
    ++block.epoch;
    enqueue_all();
  }
  park(Wait::kBarrier, op, file, line);
  block.current->wait = Wait::kRunnable;
  return block.vote_result;  // stays until the next barrier, which needs this thread
}

bool run_block(const Launch& config, uint3 index, uint64_t order_seed) {
  launch = &config;
  in_order = seed == 0;
  random_state = order_seed | 1;
  blockIdx = index;
  blockDim = config.block;
  gridDim = config.grid;
  block.size = static_cast<int>(config.block.x * config.block.y * config.block.z);
  block.exited = block.arrived = block.votes = 0;
  block.first_epoch = ++block.epoch;
  uint3 thread_index = {0, 0, 0};
  for (int i = 0; i < block.size; ++i) {
    Thread& thread = block.threads[i];
    thread.context = nullptr;
    thread.stack = nullptr;
    thread.index = thread_index;
    thread.id = static_cast<uint16_t>(i);
    thread.wait = Wait::kRunnable;
    if (++thread_index.x == config.block.x) {
      thread_index.x = 0;
      if (++thread_index.y == config.block.y) {
        thread_index.y = 0;
        ++thread_index.z;
      }
    }
  }
  for (int w = 0; w * kWarpSize < block.size; ++w) {
    const int lanes = block.size - w * kWarpSize;
    block.warps[w].exists = lanes >= kWarpSize ? ~0u : (1u << lanes) - 1;
    block.warps[w].exited = block.warps[w].waiting = 0;
  }
  failed = false;
  failing_code = nullptr;
  begin_block_memory(config.dynamic_bytes);
  enqueue_all();
  main_sanitizer = {};
  switch_to(&main_context, &main_sanitizer_stack, dequeue());
  if (failed) {
    // Whoever waited is abandoned; the stacks are used
    // again, and nothing may still be poisoned on them.
    for (int i = 0; i < block.size; ++i) {
      Thread& thread = block.threads[i];
      if (thread.stack == nullptr) continue;
      unpoison(thread.stack->bottom, static_cast<size_t>(thread.stack->top - thread.stack->bottom));
      stacks.release(thread.stack);
    }
    drop_pending_race_check();
  }
  const char* overrun = end_block_memory();
  if (overrun != nullptr && !failed) {
    snprintf(failure_text, sizeof(failure_text), "%s", overrun);
    failed = true;
  }
  if (!failed) block.current = nullptr;  // kept for the message otherwise
  return !failed;
}

}  // namespace rf::simt
