#include "interruption.hpp"

#include <unistd.h>

#include <csignal>

namespace dockbridge::bench {

namespace {

// A signal handler can access nothing else.
volatile std::sig_atomic_t g_pending_signal = 0;

void remember(int signal) {
  g_pending_signal = signal;
}

}  // namespace

void unwind_on_signals(seconds limit) {
  struct sigaction action {};
  action.sa_handler = remember;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM}) {
    ::sigaction(signal, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
  ::alarm(static_cast<unsigned int>(limit.count()));
}

void check_interruption() {
  const int signal = g_pending_signal;
  if (signal != 0) {
    g_pending_signal = 0;
    throw Interrupted(signal == SIGALRM ? "the time limit of the run has passed" : "interrupted");
  }
}

}  // namespace dockbridge::bench
