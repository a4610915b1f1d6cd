#include <doctest/doctest.h>

#include <random>
#include <string>

#include "agent/files/image/image_header.hpp"
#include "agent/files/image/image_scale.hpp"
#include "support/png.hpp"

using namespace dockbridge;
using namespace dockbridge::test;
using agent::has_image_end;
using agent::image_header_of;
using agent::ImageHeader;
using agent::scale_image;

namespace {

constexpr std::size_t k_room = 1024UL * 1024;

std::string noisy_png(int width, int height) {
  std::mt19937 random(1);
  return png(width, height, [&](int, int) {
    return Colour{static_cast<unsigned char>(random()), static_cast<unsigned char>(random()),
                  static_cast<unsigned char>(random())};
  });
}

std::string exif(char orientation, bool little_endian) {
  const auto number = [&](std::uint32_t value, int bytes) {
    std::string text = big_endian(value, bytes);
    return little_endian ? std::string(text.rbegin(), text.rend()) : text;
  };
  const std::string block = std::string("Exif\0\0", 6) + (little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) +
                            number(1, 2) + number(0x0112, 2) + number(3, 2) + number(1, 4) +
                            number(static_cast<std::uint32_t>(orientation), 2) + number(0, 2) + number(0, 4);
  return "\xFF\xE1" + big_endian(static_cast<std::uint32_t>(block.size() + 2), 2) + block;
}

std::string code(const std::string& file, const ImageHeader& header) {
  const auto scaled = scale_image(file, header, 10, k_room);
  return scaled ? "" : std::string(name_of(scaled.error().code));
}

}  // namespace

TEST_CASE("image header: size of PNG and JPEG, and the orientation of EXIF") {
  const auto header = image_header_of(plain_png(7, 3));
  REQUIRE(header);
  CHECK(header->width == 7);
  CHECK(header->height == 3);
  CHECK(!header->is_turned());
  const std::string frame = std::string("\xFF\xC0\x00\x11\x08", 5) + big_endian(300, 2) + big_endian(400, 2) + "\3";
  for (const bool little_endian : {false, true}) {
    const auto jpeg = image_header_of("\xFF\xD8" + exif(6, little_endian) + frame);
    REQUIRE(jpeg);
    CHECK(jpeg->width == 400);
    CHECK(jpeg->height == 300);
    CHECK(jpeg->orientation == 6);
  }
  CHECK(image_header_of("\xFF\xD8" + exif(9, false) + frame)->orientation == 1);
  // XMP has the same marker.
  const std::string xmp = std::string("http://ns.adobe.com/xap/1.0/\0<x/>", 33);
  const std::string xmp_block = "\xFF\xE1" + big_endian(static_cast<std::uint32_t>(xmp.size() + 2), 2) + xmp;
  CHECK(image_header_of("\xFF\xD8" + exif(6, false) + xmp_block + frame)->orientation == 6);
  CHECK(image_header_of("\xFF\xD8" + xmp_block + exif(6, false) + frame)->orientation == 6);
  const auto gif = image_header_of(std::string("GIF89a\x40\x06\x03\x00", 10));
  REQUIRE(gif);
  CHECK(gif->width == 1600);
  CHECK(gif->height == 3);
}

TEST_CASE("image header: size of the three kinds of WebP") {
  const auto size_of = [](const std::string& chunk) {
    const auto header = image_header_of(std::string("RIFF\x1A\0\0\0WEBP", 12) + chunk);
    return header ? std::pair(header->width, header->height) : std::pair(0U, 0U);
  };
  const std::string lossy("VP8 \x0A\0\0\0\0\0\0\x9D\x01\x2A\x40\x06\x03\x80", 18);
  CHECK(size_of(lossy) == std::pair(1600U, 3U));
  CHECK(size_of(lossy.substr(0, 15)) == std::pair(0U, 0U));
  const std::string lossless("VP8L\x05\0\0\0\x2F\x3F\x86\0\0", 13);  // 1599 and 2 in 14 bits each
  CHECK(size_of(lossless) == std::pair(1600U, 3U));
  CHECK(size_of(lossless.substr(0, 12)) == std::pair(0U, 0U));
  const std::string extended("VP8X\x0A\0\0\0\0\0\0\0\x3F\x06\0\x02\0\0", 18);
  CHECK(size_of(extended) == std::pair(1600U, 3U));
  CHECK(size_of(extended.substr(0, 17)) == std::pair(0U, 0U));
  CHECK(size_of("ALPH and more than this") == std::pair(0U, 0U));
}

TEST_CASE("image end: found in whole PNG and JPEG files only") {
  const std::string whole = plain_png(50, 50);
  CHECK(has_image_end(whole));
  CHECK(has_image_end(whole + "more"));
  for (std::size_t size = 16; size < whole.size(); size += 7) {
    CHECK(!has_image_end(whole.substr(0, size)));
  }
  const std::string noise = noisy_png(40, 40);
  const std::string jpeg = scale_image(noise, *image_header_of(noise), 40, 3000)->bytes;
  REQUIRE(jpeg.starts_with("\xFF\xD8\xFF"));
  CHECK(has_image_end(jpeg));
  CHECK(has_image_end(jpeg + "more"));
  for (std::size_t size = 3; size < jpeg.size(); ++size) {
    REQUIRE(!has_image_end(jpeg.substr(0, size)));
  }
  // A preview with an end marker, in a segment of a file that is cut.
  const std::string preview = "\xFF\xE1" + big_endian(8, 2) + "\xFF\xD8\xFF\xD9xx";
  CHECK(!has_image_end("\xFF\xD8" + preview + jpeg.substr(2, jpeg.size() - 4)));
  CHECK(has_image_end("\xFF\xD8" + preview + jpeg.substr(2)));
}

TEST_CASE("image header: damaged headers and other files have none") {
  const std::string whole = "\xFF\xD8" + exif(6, true) + std::string("\xFF\xC0\x00\x11\x08\0\1\0\1\3", 10);
  for (std::size_t size = 0; size < whole.size() - 1; ++size) {
    CHECK(!image_header_of(whole.substr(0, size)));
  }
  CHECK(!image_header_of(plain_png(5, 5).substr(0, 20)));
  CHECK(!image_header_of(png_start(0, 5)));
  CHECK(!image_header_of(png_start(0x80000000U, 5)));
  CHECK(!image_header_of("GIF89a"));
  CHECK(!image_header_of(""));
  std::mt19937 random(7);
  int understood = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (const auto header = image_header_of(damaged)) {  // any values, within bounds
      const bool is_bounded = header->width > 0 && header->width <= 0xFFFF && header->height > 0 &&
                              header->height <= 0xFFFF && header->orientation >= 1 && header->orientation <= 8;
      REQUIRE(is_bounded);
      ++understood;
    }
  }
  CHECK(understood > 0);
}

TEST_CASE("image scale: the longer side gets the wanted length") {
  const std::string file = plain_png(400, 100);
  const auto scaled = scale_image(file, *image_header_of(file), 40, k_room);
  REQUIRE(scaled);
  CHECK(scaled->type == "image/png");
  CHECK(scaled->width == 40);
  CHECK(scaled->height == 10);
  const auto header = image_header_of(scaled->bytes);
  REQUIRE(header);
  CHECK(header->width == 40);
  CHECK(header->height == 10);
  const std::string line = plain_png(3000, 1);
  CHECK(scale_image(line, *image_header_of(line), 100, k_room)->height == 1);
}

TEST_CASE("image scale: a PNG that is too large becomes a JPEG, and a JPEG stays one") {
  const std::string file = noisy_png(300, 200);
  const auto jpeg = scale_image(file, *image_header_of(file), 200, 60'000);
  REQUIRE(jpeg);
  CHECK(jpeg->type == "image/jpeg");
  CHECK(jpeg->bytes.size() <= 60'000);
  const auto again = scale_image(jpeg->bytes, *image_header_of(jpeg->bytes), 50, k_room);
  REQUIRE(again);
  CHECK(again->type == "image/jpeg");
  CHECK(again->width == 50);
  CHECK(again->height == 33);
  // A photo with an orientation is turned upright.
  const std::string turned = jpeg->bytes.substr(0, 2) + exif(6, true) + jpeg->bytes.substr(2);
  const auto upright = scale_image(turned, *image_header_of(turned), 50, k_room);
  REQUIRE(upright);
  CHECK(upright->width == 33);
  CHECK(upright->height == 50);
  CHECK(image_header_of(upright->bytes)->width == 33);
}

TEST_CASE("image scale: every orientation is applied") {
  const int width = 5;
  const int height = 3;
  const auto colour = [](int x, int y) {
    return Colour{static_cast<unsigned char>(x * 50), static_cast<unsigned char>(y * 100), 9};
  };
  const std::string file = png(width, height, colour);
  const auto shown = [&](int orientation, auto source) {
    const bool turned = orientation >= 5;
    const std::string wanted = png(turned ? height : width, turned ? width : height, source);
    const auto expected = scale_image(wanted, *image_header_of(wanted), 5, k_room);
    const auto scaled = scale_image(file, ImageHeader{5, 3, orientation}, 5, k_room);
    CAPTURE(orientation);
    REQUIRE(scaled);
    REQUIRE(expected);
    CHECK(scaled->width == expected->width);
    CHECK((scaled->bytes == expected->bytes));
  };
  shown(1, colour);
  shown(2, [&](int x, int y) { return colour(width - 1 - x, y); });
  shown(3, [&](int x, int y) { return colour(width - 1 - x, height - 1 - y); });
  shown(4, [&](int x, int y) { return colour(x, height - 1 - y); });
  shown(5, [&](int x, int y) { return colour(y, x); });
  shown(6, [&](int x, int y) { return colour(y, height - 1 - x); });
  shown(7, [&](int x, int y) { return colour(width - 1 - y, height - 1 - x); });
  shown(8, [&](int x, int y) { return colour(width - 1 - y, x); });
}

TEST_CASE("image scale: bombs and damaged files are errors") {
  const std::string bomb = png_start(30'000, 30'000) + png_chunk("IDAT", zlib_stored("x")) + png_chunk("IEND", "");
  CHECK(code(bomb, *image_header_of(bomb)) == "too_large");
  // 36 million pixels of 8 bytes exceed the decoder's memory. The file has all its data: 288 MB of zeros.
  const std::string deep =
      png_start(6000, 6000, 16, 6) + png_chunk("IDAT", zlib_zeros(6000ULL * (1 + 6000 * 8))) + png_chunk("IEND", "");
  CHECK(code(deep, *image_header_of(deep)) == "out_of_memory");
  const std::string shallow =
      png_start(600, 600, 16, 6) + png_chunk("IDAT", zlib_zeros(600ULL * (1 + 600 * 8))) + png_chunk("IEND", "");
  CHECK(code(shallow, *image_header_of(shallow)).empty());
  const std::string short_data = png_start(2000, 2000) + png_chunk("IDAT", zlib_stored("x")) + png_chunk("IEND", "");
  CHECK(code(short_data, *image_header_of(short_data)) == "bad_image");
  const std::string whole = plain_png(50, 50);
  CHECK(code(whole.substr(0, whole.size() / 2), *image_header_of(whole)) == "bad_image");
  CHECK(code(whole, ImageHeader{40, 40, 1}) == "bad_image");
  CHECK(scale_image(whole, ImageHeader{40, 40, 1}, 10, k_room).error().sentence().find("scale: false") ==
        std::string::npos);
  // The result has no space.
  CHECK(scale_image(whole, *image_header_of(whole), 20, 10).error().code == ErrorCode::bad_image);
  std::mt19937 random(3);
  const std::string noise = noisy_png(40, 40);
  const auto jpeg = scale_image(noise, *image_header_of(noise), 40, 3000);
  REQUIRE(jpeg);
  for (int round = 0; round < 200; ++round) {
    std::string damaged = round % 2 == 0 ? noise : jpeg->bytes;
    for (int i = 0; i < 5; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (const auto header = image_header_of(damaged)) {
      const auto scaled = scale_image(damaged, *header, 20, k_room);
      CHECK((scaled || scaled.error().code == ErrorCode::bad_image || scaled.error().code == ErrorCode::too_large));
    }
  }
}
