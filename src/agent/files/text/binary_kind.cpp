#include "agent/files/text/binary_kind.hpp"

#include <cstddef>
#include <span>

namespace dockbridge::agent {

namespace {

struct Magic {
  std::size_t at;
  std::string_view bytes;
  const char* kind;
};

using namespace std::string_view_literals;

constexpr Magic k_images[] = {
    {0, "\x89PNG\r\n\x1A\n", "image/png"},
    {0, "\xFF\xD8\xFF", "image/jpeg"},
    {0, "GIF87a", "image/gif"},
    {0, "GIF89a", "image/gif"},
    {8, "WEBP", "image/webp"},
};

constexpr Magic k_kinds[] = {
    {0, "\x1F\x8B", "gzip archive"},
    {0, "BZh", "bzip2 archive"},
    {0,
     "\xFD"
     "7zXZ\0"sv,
     "xz archive"},
    {0, "\x28\xB5\x2F\xFD", "zstd archive"},
    {0, "\x04\x22\x4D\x18", "lz4 archive"},
    {0, "PK\x03\x04", "zip archive (or a document, jar or package made as one)"},
    {0, "PK\x05\x06", "zip archive, empty"},
    {0, "7z\xBC\xAF\x27\x1C", "7-Zip archive"},
    {0, "Rar!\x1A\x07", "RAR archive"},
    {257, "ustar", "tar archive"},
    {0, "!<arch>\ndebian-binary", "Debian package"},
    {0, "!<arch>\n", "static library"},
    {0, "\xED\xAB\xEE\xDB", "RPM package"},
    {0, "%PDF-", "PDF document"},
    {0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "Microsoft Office document (old format)"},
    {0, "SQLite format 3\0"sv, "SQLite database"},
    {0, "PAR1", "Parquet table"},
    {0, "\x89HDF\r\n\x1A\n", "HDF5 data"},
    {0, "\x93NUMPY", "NumPy array"},
    {0, "\xCA\xFE\xBA\xBE", "Java class"},
    {0, "\0asm"sv, "WebAssembly module"},
    {0, "BC\xC0\xDE", "LLVM bitcode"},
    {1, "\r\r\n", "Python bytecode"},
    {0, "MZ", "Windows executable"},
    {0, "\xCF\xFA\xED\xFE", "macOS executable"},
    {0, "PACK\0\0\0"sv, "git pack"},
    {0, "DIRC\0\0\0"sv, "git index"},
    {0, "\x89PNG\r\n\x1A\n", "PNG image"},
    {0, "\xFF\xD8\xFF", "JPEG image"},
    {0, "GIF8", "GIF image"},
    {8, "WEBP", "WebP image"},
    {0, "II*\0"sv, "TIFF image"},
    {0, "MM\0*"sv, "TIFF image"},
    {0, "\0\0\1\0"sv, "Windows icon"},
    {4, "ftypavif", "AVIF image"},
    {4, "ftypheic", "HEIC image"},
    {4, "ftyp", "MP4 video"},
    {0, "\x1A\x45\xDF\xA3", "Matroska or WebM video"},
    {8, "AVI ", "AVI video"},
    {8, "WAVE", "WAV sound"},
    {0, "OggS", "Ogg sound or video"},
    {0, "fLaC", "FLAC sound"},
    {0, "ID3", "MP3 sound"},
    {0, "\0\1\0\0\0"sv, "TrueType font"},
    {0, "OTTO", "OpenType font"},
    {0, "wOF", "web font"},
    {0, "\xFF\xFE\0\0"sv, "UTF-32 text"},
    {0, "\xFF\xFE", "UTF-16 text, broken or too large to be shown (iconv converts it)"},
    {0, "\xFE\xFF", "UTF-16 text, broken or too large to be shown (iconv converts it)"},
    {0, "\0\0\xFE\xFF"sv, "UTF-32 text"},
};

/// Looks up the first bytes of a file in a table; null if no entry matches.
const char* kind_by_magic(std::span<const Magic> table, std::string_view first_bytes) {
  for (const auto& [at, bytes, kind] : table) {
    if (first_bytes.size() >= at && first_bytes.substr(at).starts_with(bytes) &&
        (at != 8 || first_bytes.starts_with("RIFF"))) {
      return kind;
    }
  }
  return nullptr;
}

const char* elf_kind(std::string_view first_bytes) {
  constexpr std::size_t k_byte_order = 5;
  constexpr std::size_t k_type = 16;
  if (first_bytes.size() < k_type + 2) {
    return "ELF file";
  }
  switch (first_bytes[first_bytes[k_byte_order] == 2 ? k_type + 1 : k_type]) {
    case 1:
      return "ELF object file";
    case 3:
      return "ELF executable or shared library";
    case 4:
      return "ELF core dump";
    default:
      return "ELF executable";
  }
}

}  // namespace

std::optional<std::string> image_type_of(std::string_view first_bytes) {
  const char* type = kind_by_magic(k_images, first_bytes);
  return type == nullptr ? std::nullopt : std::optional<std::string>(type);
}

std::string describe_binary(std::string_view first_bytes) {
  if (first_bytes.starts_with("\x7F"
                              "ELF")) {
    return elf_kind(first_bytes);
  }
  const char* kind = kind_by_magic(k_kinds, first_bytes);
  return kind == nullptr ? "binary data" : kind;
}

}  // namespace dockbridge::agent
