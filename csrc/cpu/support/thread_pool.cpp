// A pool of detached threads, made when first needed. A job is open while it wants more workers;
// idle workers look for an open job for a moment after their last one, then sleep.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "cpu/support/parallel.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <signal.h>
#define RF_POSIX_THREADS 1
#endif

namespace {

using Clock = std::chrono::steady_clock;

// How long an idle worker looks for work before it sleeps: waking it takes 5 to 50 microseconds, of
// which calls that follow each other closely are spared. libgomp looks for a millisecond or more.
constexpr auto kIdleSpin = std::chrono::microseconds(200);
// How long a caller looks whether the workers are through before it sleeps.
constexpr auto kJoinSpin = std::chrono::microseconds(50);

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <typename Condition>
bool spin_until(std::chrono::microseconds limit, const Condition& condition) {
  const auto end = Clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return condition();
}

struct Job {
  void (*work)(const void*, int);
  const void* context;
  int wanted;                   // workers that may still join; guarded by the pool's mutex
  int joined = 0;               // the same
  std::atomic<int> running{0};  // workers inside `work`
};

class Pool {
 public:
  void run(int threads, void (*work)(const void*, int), const void* context) {
    Job job{work, context, threads - 1};
    open(job);
    work(context, 0);
    close(job);
  }

 private:
  void open(Job& job) {
    int to_wake;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      while (workers_ < job.wanted && add_worker()) ++workers_;
      jobs_.push_back(&job);
      places_.fetch_add(job.wanted, std::memory_order_release);
      to_wake = std::min(sleeping_, job.wanted);
    }
    for (; to_wake > 0; --to_wake) wake_.notify_one();
  }

  void close(Job& job) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      places_.fetch_sub(job.wanted, std::memory_order_relaxed);
      jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    }
    const auto finished = [&job] { return job.running.load(std::memory_order_acquire) == 0; };
    if (finished() || spin_until(kJoinSpin, finished)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, finished);
  }

  bool add_worker() {
#ifdef RF_POSIX_THREADS
    // Signals are for the program's own threads: Python's handlers expect them there.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
    bool added = true;
    try {
      std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      added = false;  // a limit of the system: the caller works with those that are there
    }
#ifdef RF_POSIX_THREADS
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
    return added;
  }

  [[noreturn]] void serve() {
    const auto has_place = [this] { return places_.load(std::memory_order_acquire) > 0; };
    for (;;) {
      if (!spin_until(kIdleSpin, has_place)) {
        std::unique_lock<std::mutex> lock(mutex_);
        ++sleeping_;
        wake_.wait(lock, has_place);
        --sleeping_;
      }
      int thread = 0;
      Job* job = join(&thread);
      if (job == nullptr) continue;  // others were quicker
      job->work(job->context, thread);
      leave(*job);
    }
  }

  Job* join(int* thread) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Job* job : jobs_) {
      if (job->wanted == 0) continue;
      --job->wanted;
      places_.fetch_sub(1, std::memory_order_relaxed);
      job->running.fetch_add(1, std::memory_order_relaxed);
      *thread = ++job->joined;
      return job;
    }
    return nullptr;
  }

  void leave(Job& job) {
    // Under the mutex, as the job is gone from its caller's stack once `running` is 0.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (job.running.fetch_sub(1, std::memory_order_acq_rel) == 1) finished_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::atomic<int> places_{0};  // sum of `wanted` over the open jobs, to be seen without the mutex
  std::vector<Job*> jobs_;
  int workers_ = 0, sleeping_ = 0;
};

// Never destroyed: workers may still be in it when the program ends.
Pool* pool = nullptr;

void renew_pool() { pool = new Pool; }

Pool& the_pool() {
  static const bool made = [] {
    renew_pool();
#ifdef RF_POSIX_THREADS
    pthread_atfork(nullptr, nullptr,
                   renew_pool);  // a forked child has the pool but not its threads
#endif
    return true;
  }();
  (void)made;
  return *pool;
}

}  // namespace

void rf::run_on_pool(int threads, void (*work)(const void*, int), const void* context) {
  the_pool().run(threads, work, context);
}
