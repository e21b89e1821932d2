// The threads of the CPU kernels.
#pragma once

namespace rf {

// Calls work(context, 0) on this thread and meanwhile, on up to threads - 1 workers,
// work(context, 1), work(context, 2), ... Returns when this thread's call has returned and no
// worker is inside one. Workers that have not begun by then never do, so `work` must be able to
// finish everything alone: it takes pieces from a shared counter until there are none. That is why
// this is not an OpenMP loop, whose end waits for every thread of the team: where other processes
// keep the cores busy, a worker is first run after a time slice of milliseconds, and a call of
// 100 microseconds would wait for it. It also works in a forked child, where libgomp hangs.
void run_on_pool(int threads, void (*work)(const void* context, int thread), const void* context);

}  // namespace rf
