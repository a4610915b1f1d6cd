#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "mcp/message.hpp"
#include "util/error.hpp"

namespace dockbridge::mcp {

/// Why a call should stop waiting.
enum class StopReason {
  none,
  cancelled,  ///< the client wants it undone: end what the call started
  detached,   ///< the client or this server goes away: leave it running and return at once
};

/// Tells one call that it should stop, and why. The first reason stays.
class Interruption {
 public:
  void interrupt(StopReason reason) {
    StopReason none = StopReason::none;
    if (m_reason.compare_exchange_strong(none, reason)) {
      m_source.request_stop();
    }
  }
  [[nodiscard]] StopReason reason() const { return m_reason.load(); }
  [[nodiscard]] std::stop_token token() const { return m_source.get_token(); }

 private:
  std::atomic<StopReason> m_reason{StopReason::none};
  std::stop_source m_source;
};

/// What a tool knows about the call it serves.
struct CallContext {
  std::string correlation_id;  ///< for logs
  std::string owner;           ///< whose handles these are
  const Interruption& interruption;
  /// Tells the client how it goes; empty if the client did not ask to be told.
  std::function<void(const std::string& message)> report_progress;
};

struct ToolResult {
  std::string text;  ///< for people and models
  json structured;   ///< for programs, as the tool's output schema says
  bool is_error = false;
  std::vector<json> more_content{};  ///< content blocks that follow the text: images
  std::string subject{};             ///< what the call worked on, for the audit log
};

struct ToolAnnotations {
  bool read_only = false;
  bool destructive = false;
  bool idempotent = false;
  bool open_world = false;
};

struct Tool {
  std::string name;
  std::string title;
  std::string description;
  ordered_json input_schema;
  ordered_json output_schema;
  ToolAnnotations annotations;
  /// Runs on a thread of its own; may block; any exception is an internal error.
  std::function<ToolResult(const json& arguments, const CallContext& context)> call;
};

/// The form in which a tool reports that it could not do what was asked.
ToolResult error_result(const Error& error);

}  // namespace dockbridge::mcp
