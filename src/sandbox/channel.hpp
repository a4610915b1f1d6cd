#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "error/error.hpp"
#include "util/clock.hpp"

namespace dockbridge::sandbox {

/// Both directions of a program in the container. Used by one thread at a time. Never blocks.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  /// The descriptors to poll for reading and for writing; they may be the same.
  [[nodiscard]] virtual int read_fd() const = 0;
  [[nodiscard]] virtual int write_fd() const = 0;

  /// 0: no bytes are available at present. The end of the stream is the error `stream_ended`.
  virtual Result<std::size_t> read(std::span<char> buffer) = 0;
  /// Number of bytes that were accepted; 0: none can be written at present.
  virtual Result<std::size_t> write(std::string_view bytes) = 0;
  /// Error output of the program, or of the command that should have started it. Bounded.
  [[nodiscard]] virtual std::string stderr_text() = 0;
};

/// A directory that host and container share.
struct SharedDirectory {
  std::string host_path;
  std::string container_path;
  /// Host directories that the container can write to. The path to `host_path` must not use a link in one of them.
  std::vector<std::string> writable_mounts{};
};

/// One run of one container. A restart or a replacement begins another.
struct ContainerRun {
  std::string id;
  std::string started_at;
  std::optional<SharedDirectory> shared{};     ///< the directory for a direct line, if there is one
  std::vector<std::string> writable_mounts{};  ///< host directories that the container can write to
  std::optional<std::uint64_t> uid{};  ///< uid of the programs; nullopt if only the container's own files define it
  std::vector<std::string> hidden{};   ///< mounts that the engine's archives do not show, such as tmpfs

  bool operator==(const ContainerRun& other) const { return id == other.id && started_at == other.started_at; }
  /// Hash that identifies the run; part of every process id.
  [[nodiscard]] std::uint32_t generation() const;
};

enum class Condition { running, paused, stopped, gone };

/// A file or directory to put into the container, owned by root.
struct PlacedFile {
  std::string name;  ///< relative; a final '/' makes it a directory
  unsigned mode = 0;
  std::string_view content{};
};

/// Whether a program in the container can be started without running another user's code.
struct Trust {
  enum class Verdict {
    trusted,
    unattributed,  ///< nothing is wrong, but the engine does not report owners
    replaceable,   ///< absent or not the expected file, and it can be placed there safely as far as is known
    unsafe         ///< another user can replace it
  };
  Verdict verdict = Verdict::unsafe;
  std::string reason{};  ///< why the verdict is not `trusted`
};

/// Access to one container. Any thread may call it; calls block until their deadline at most.
class Channel {
 public:
  virtual ~Channel() = default;

  [[nodiscard]] virtual std::string container_name() const = 0;
  /// Finds the container, and starts or creates it if necessary.
  virtual Result<ContainerRun> prepare(Deadline deadline) = 0;
  /// Condition of the run that `prepare` reported; `gone` if the name now belongs to another run.
  virtual Result<Condition> condition(const ContainerRun& run, Deadline deadline) = 0;
  /// Starts a program and connects to its standard streams.
  virtual Result<std::unique_ptr<ByteStream>> open(const ContainerRun& run, const std::vector<std::string>& argv,
                                                   Deadline deadline) = 0;
  /// Puts files below the existing directory `base`. Files with the same names are replaced. Error `engine_error` if a
  /// retry may succeed, for example after a race with another server; `read_only` and `no_such_file` are final.
  virtual Result<void> place(const ContainerRun& run, const std::string& base, const std::vector<PlacedFile>& files,
                             Deadline deadline) = 0;
  /// Checks a program through the engine, without running anything in the container. The file at `path` must have this
  /// content. The file and every directory above it must belong to root or to the user that programs run as, and must
  /// not be writable by others.
  virtual Result<Trust> examine(const ContainerRun& run, const std::string& path, std::string_view content,
                                Deadline deadline) = 0;
};

}  // namespace dockbridge::sandbox
