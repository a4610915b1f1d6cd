#include "docker/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace dockbridge::docker {

namespace {

constexpr std::size_t k_block_bytes = 512;

void put(std::string& block, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
}

std::string header_of(const TarEntry& entry) {
  std::string block(k_block_bytes, '\0');
  const bool directory = entry.name.ends_with('/');
  put(block, 0, entry.name);
  put(block, 100, fmt::format("{:07o}", entry.mode));
  put(block, 108, "0000000");
  put(block, 116, "0000000");
  put(block, 124, fmt::format("{:011o}", entry.content.size()));
  put(block, 136, "00000000000");
  put(block, 148, "        ");
  put(block, 156, directory ? "5" : "0");
  put(block, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  const unsigned sum = std::accumulate(block.begin(), block.end(), 0U,
                                       [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
  put(block, 148, fmt::format("{:06o}", sum) + '\0');
  return block;
}

}  // namespace

std::string make_tar(const std::vector<TarEntry>& entries) {
  std::string tar;
  for (const TarEntry& entry : entries) {
    tar += header_of(entry);
    tar += entry.content;
    tar.resize((tar.size() + k_block_bytes - 1) / k_block_bytes * k_block_bytes, '\0');
  }
  tar.resize(tar.size() + 2 * k_block_bytes, '\0');
  return tar;
}

}  // namespace dockbridge::docker
