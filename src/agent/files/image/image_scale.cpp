#include "agent/files/image/image_scale.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

#include "agent/files/image/confinement.hpp"
#include "util/fd.hpp"

namespace {

// Allocator of the decoder: one block, used from its start. Only the newest piece can grow or be freed, which is mostly
// what the library does.

constexpr std::size_t k_arena_bytes = 512UL * 1024 * 1024;
constexpr std::size_t k_alignment = 16;

char* g_arena = nullptr;
std::size_t g_used = 0;
bool g_was_exhausted = false;
char* g_newest = nullptr;

std::size_t& size_before(void* piece) {
  return *reinterpret_cast<std::size_t*>(static_cast<char*>(piece) - k_alignment);
}

void* arena_take(std::size_t size) {
  if (size > k_arena_bytes || g_used + size + 2 * k_alignment > k_arena_bytes) {
    g_was_exhausted = true;
    return nullptr;
  }
  g_newest = g_arena + g_used + k_alignment;
  size_before(g_newest) = size;
  g_used += k_alignment + (size + k_alignment - 1) / k_alignment * k_alignment;
  return g_newest;
}

void arena_free(void* piece) {
  if (piece != nullptr && piece == g_newest) {
    g_used = static_cast<std::size_t>(g_newest - g_arena) - k_alignment;
    g_newest = nullptr;
  }
}

void* arena_resize(void* piece, std::size_t size) {
  if (piece == nullptr) {
    return arena_take(size);
  }
  const std::size_t before = size_before(piece);
  arena_free(piece);  // keeps the bytes
  void* const grown = arena_take(size);
  if (grown != nullptr && grown != piece) {
    std::memcpy(grown, piece, std::min(before, size));
  }
  return grown;
}

}  // namespace

#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_NO_THREAD_LOCALS
#define STBI_ASSERT(x) ((void)(x))
#define STBI_MALLOC(size) arena_take(size)
#define STBI_REALLOC(piece, size) arena_resize(piece, size)
#define STBI_FREE(piece) arena_free(piece)
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#define STBIR_ASSERT(x) ((void)(x))
#define STBIR_MALLOC(size, context) ((void)(context), arena_take(size))
#define STBIR_FREE(piece, context) ((void)(context), arena_free(piece))
#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#include <stb/stb_image_resize.h>

#define STBI_WRITE_NO_STDIO
#define STBIW_ASSERT(x) ((void)(x))
#define STBIW_MALLOC(size) arena_take(size)
#define STBIW_REALLOC(piece, size) arena_resize(piece, size)
#define STBIW_FREE(piece) arena_free(piece)
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

namespace dockbridge::agent {

namespace {

constexpr int k_cpu_seconds = 20;
constexpr int k_max_wait_ms = 30'000;
constexpr int k_usual_quality = 85;
constexpr int k_low_quality = 50;

/// Memory that the decoder writes. Not trusted.
struct SharedOutput {
  std::uint32_t is_complete;
  std::uint32_t is_png;
  std::size_t size;
  char bytes[];
};

/// Stores the output of the encoder, up to a limit.
struct Sink {
  char* bytes;
  std::size_t limit;
  std::size_t size = 0;
  bool overflowed = false;

  static void write(void* context, void* data, int size) {
    auto* sink = static_cast<Sink*>(context);
    const auto length = static_cast<std::size_t>(size);
    sink->overflowed = sink->overflowed || length > sink->limit - sink->size;
    if (!sink->overflowed) {
      std::memcpy(sink->bytes + sink->size, data, length);
      sink->size += length;
    }
  }
};

struct Pixels {
  unsigned char* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;

  [[nodiscard]] bool has_alpha() const { return channels == 2 || channels == 4; }
};

/// Turns the pixels upright, according to an EXIF orientation. Empty if memory is exhausted.
Pixels upright(const Pixels& from, int orientation) {
  if (orientation == 1) {
    return from;
  }
  const bool is_turned = orientation >= 5;
  Pixels to{nullptr, is_turned ? from.height : from.width, is_turned ? from.width : from.height, from.channels};
  const auto channels = static_cast<std::size_t>(from.channels);
  to.data = static_cast<unsigned char*>(
      arena_take(static_cast<std::size_t>(to.width) * static_cast<std::size_t>(to.height) * channels));
  for (int y = 0; to.data != nullptr && y < to.height; ++y) {
    for (int x = 0; x < to.width; ++x) {
      const bool mirrors_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
      const bool mirrors_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
      const int along = is_turned ? y : x;
      const int down = is_turned ? x : y;
      const int source_x = mirrors_x ? from.width - 1 - along : along;
      const int source_y = mirrors_y ? from.height - 1 - down : down;
      const auto source = static_cast<std::size_t>(source_y) * static_cast<std::size_t>(from.width) +
                          static_cast<std::size_t>(source_x);
      const auto target =
          static_cast<std::size_t>(y) * static_cast<std::size_t>(to.width) + static_cast<std::size_t>(x);
      std::memcpy(to.data + target * channels, from.data + source * channels, channels);
    }
  }
  return to;
}

/// Blends the pixels with white, in place: JPEG has no transparency.
void flatten(Pixels& pixels) {
  const int colours = pixels.channels - 1;
  const std::size_t count = static_cast<std::size_t>(pixels.width) * static_cast<std::size_t>(pixels.height);
  unsigned char* to = pixels.data;
  for (const unsigned char* from = pixels.data; from < pixels.data + count * static_cast<std::size_t>(pixels.channels);
       from += pixels.channels) {
    const int alpha = from[colours];
    for (int i = 0; i < colours; ++i) {
      *to++ = static_cast<unsigned char>((from[i] * alpha + 255 * (255 - alpha)) / 255);
    }
  }
  pixels.channels = colours;
}

Pixels scaled(const Pixels& from, std::uint32_t width, std::uint32_t height) {
  Pixels to{nullptr, static_cast<int>(width), static_cast<int>(height), from.channels};
  to.data = static_cast<unsigned char*>(
      arena_take(static_cast<std::size_t>(width) * height * static_cast<std::size_t>(from.channels)));
  const int alpha = from.has_alpha() ? from.channels - 1 : STBIR_ALPHA_CHANNEL_NONE;
  const bool done = to.data != nullptr && stbir_resize_uint8_srgb(from.data, from.width, from.height, 0, to.data,
                                                                  to.width, to.height, 0, from.channels, alpha, 0) != 0;
  return done ? to : Pixels{};
}

/// Work of the decoder process. Makes no system call.
void decode_and_scale(std::string_view file, const ImageHeader& header, std::uint32_t width, std::uint32_t height,
                      std::size_t max_bytes, SharedOutput& result) {
  Pixels pixels;
  pixels.data =
      stbi_load_from_memory(reinterpret_cast<const unsigned char*>(file.data()), static_cast<int>(file.size()),
                            &pixels.width, &pixels.height, &pixels.channels, 0);
  if (pixels.data == nullptr || static_cast<std::uint32_t>(pixels.width) != header.width ||
      static_cast<std::uint32_t>(pixels.height) != header.height) {
    return;
  }
  pixels = scaled(pixels, width, height);
  pixels = pixels.data != nullptr ? upright(pixels, header.orientation) : pixels;
  if (pixels.data == nullptr) {
    return;
  }
  Sink sink{result.bytes, max_bytes};
  if (file.front() != '\xFF') {
    const bool done = stbi_write_png_to_func(Sink::write, &sink, pixels.width, pixels.height, pixels.channels,
                                             pixels.data, pixels.width * pixels.channels) != 0;
    result.is_png = done && !sink.overflowed ? 1 : 0;
  }
  if (result.is_png == 0) {
    if (pixels.has_alpha()) {
      flatten(pixels);
    }
    for (const int quality : {k_usual_quality, k_low_quality}) {
      sink = {result.bytes, max_bytes};
      const bool done = stbi_write_jpg_to_func(Sink::write, &sink, pixels.width, pixels.height, pixels.channels,
                                               pixels.data, quality) != 0;
      if (done && !sink.overflowed) {
        break;
      }
    }
  }
  result.size = sink.overflowed ? 0 : sink.size;
  result.is_complete = 1;
}

/// Exit codes of the decoder.
enum ExitCode : int { k_finished = 0, k_no_memory = 1, k_not_confined = 2 };

/// Drops every privilege but computing. Returns false if that is impossible.
bool confine(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {  // the parent died before the call above
    return false;
  }
  if (const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score) {
    [[maybe_unused]] const ssize_t written = ::write(score.get(), "1000", 4);
  }
  const rlimit cpu{k_cpu_seconds, k_cpu_seconds + 1};  // SIGXCPU at the soft limit, SIGKILL at the hard limit
  ::setrlimit(RLIMIT_CPU, &cpu);
  const rlimit core{0, 0};
  ::setrlimit(RLIMIT_CORE, &core);
  // Closes the inherited locks and pipes. Older kernels do not have this call.
  ::syscall(SYS_close_range, 0U, ~0U, 0U);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // sanitizers make system calls of their own
  return true;
#else
  return forbid_system_calls();
#endif
}

/// Waits for the decoder to exit, and kills it at the deadline. Returns the error that its exit status means.
Result<void> await_end(pid_t process) {
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  pollfd ended{handle.get(), POLLIN, 0};
  const bool is_late = !handle || ::poll(&ended, 1, k_max_wait_ms) <= 0;
  if (is_late) {
    ::kill(process, SIGKILL);
  }
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : k_finished;
  if (is_late || signal == SIGXCPU) {
    return fail(ErrorCode::too_large, fmt::format("Image takes more than {} s to decode", k_cpu_seconds),
                "Pass scale: false, or make a smaller copy with a command");
  }
  if (signal == SIGKILL || code == k_no_memory) {  // the kernel kills the decoder first when memory is short
    return fail(ErrorCode::out_of_memory, "Not enough memory to scale the image");
  }
  if (code == k_not_confined) {
    return fail(ErrorCode::cannot_start, "Image decoder cannot be confined: the kernel refuses a seccomp filter",
                "Pass scale: false, or make a smaller copy with a command");
  }
  return {};
}

struct Unmap {
  std::size_t size;
  void operator()(SharedOutput* memory) const { ::munmap(memory, size); }
};

}  // namespace

Result<ScaledImage> scale_image(std::string_view file, const ImageHeader& header, std::uint32_t max_side,
                                std::size_t max_bytes) {
  const std::uint64_t pixels = std::uint64_t{header.width} * header.height;
  if (pixels > k_max_decoded_pixels || file.size() > k_max_scaled_file_bytes || file.size() > INT_MAX) {
    return fail(ErrorCode::too_large,
                fmt::format("Image has {}x{} pixels, more than {} million", header.width, header.height,
                            k_max_decoded_pixels / 1'000'000),
                "Make a smaller copy with a command");
  }
  const std::uint32_t longer = std::max(header.width, header.height);
  const auto side = [&](std::uint32_t length) {
    const std::uint64_t scaled_length = (std::uint64_t{length} * max_side + longer / 2) / longer;
    return longer <= max_side ? length : static_cast<std::uint32_t>(std::max<std::uint64_t>(scaled_length, 1));
  };
  const std::uint32_t width = side(header.width);
  const std::uint32_t height = side(header.height);
  const std::size_t shared_bytes = sizeof(SharedOutput) + max_bytes;
  void* const memory = ::mmap(nullptr, shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::out_of_memory, "Not enough memory to scale the image", "Pass scale: false");
  }
  const std::unique_ptr<SharedOutput, Unmap> shared(static_cast<SharedOutput*>(memory), Unmap{shared_bytes});
  SharedOutput& result = *shared;
  const pid_t self = ::getpid();
  const pid_t process = ::fork();
  if (process == 0) {
    g_arena = static_cast<char*>(
        ::mmap(nullptr, k_arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (g_arena == MAP_FAILED) {
      ::_exit(k_no_memory);
    }
    if (!confine(self)) {
      ::_exit(k_not_confined);
    }
    decode_and_scale(file, header, width, height, max_bytes, result);
    ::_exit(g_was_exhausted && result.is_complete == 0 ? k_no_memory : k_finished);
  }
  if (process < 0) {
    return fail(ErrorCode::cannot_fork, "Cannot start a process: the container's process limit is reached");
  }
  if (auto ended = await_end(process); !ended) {
    return fail(ended.error());
  }
  const std::size_t size = result.size;
  if (result.is_complete != 1 || size == 0 || size > max_bytes) {
    return fail(ErrorCode::bad_image, "Image cannot be decoded: it is damaged, or of an unknown kind");
  }
  return ScaledImage{std::string(result.bytes, size), result.is_png == 1 ? "image/png" : "image/jpeg",
                     header.is_turned() ? height : width, header.is_turned() ? width : height};
}

}  // namespace dockbridge::agent
