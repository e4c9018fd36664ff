// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/sha256.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace vabi::facts {
namespace {

constexpr size_t kBlock = 64;

constexpr bool IsPrime(uint32_t n) {
  for (uint32_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n > 1;
}

// 128 bits, the lowest first: not every machine has a type of that width. A plain array, since
// clang counts each call of std::array's operator[] as a step, and stops after a million.
constexpr size_t kWords = 4;
struct Wide {
  uint32_t word[kWords];
};

constexpr Wide Times(const Wide& a, uint64_t b) {
  Wide product{};
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t factor = b >> (32 * i) & 0xffffffff;
    uint64_t carry = 0;
    for (size_t j = 0; i + j < kWords; ++j) {
      carry += product.word[i + j] + a.word[j] * factor;
      product.word[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  return product;
}

constexpr bool NotAbove(const Wide& a, const Wide& b) {
  for (size_t i = kWords; i-- > 0;) {
    if (a.word[i] != b.word[i]) return a.word[i] < b.word[i];
  }
  return true;
}

// First 32 fractional bits of the k-th root of n (k = 2 or 3), found bit by bit: FIPS 180-4 defines
// all of the algorithm's constants this way.
constexpr uint32_t RootFraction(uint32_t n, size_t k) {
  Wide target{};
  target.word[k] = n;
  uint64_t root = 0;
  for (int bit = 36; bit >= 0; --bit) {
    uint64_t trial = root | (uint64_t{1} << bit);
    // trial^k <= n * 2^(32k); the cube of a 37-bit number fits 128 bits.
    Wide power = {{static_cast<uint32_t>(trial), static_cast<uint32_t>(trial >> 32)}};
    for (size_t i = 1; i < k; ++i) power = Times(power, trial);
    if (NotAbove(power, target)) root = trial;
  }
  return static_cast<uint32_t>(root);
}

template <size_t kCount>
constexpr std::array<uint32_t, kCount> RootsOfPrimes(size_t k) {
  std::array<uint32_t, kCount> roots{};
  uint32_t n = 2;
  for (size_t i = 0; i < kCount; ++n) {
    if (IsPrime(n)) roots[i++] = RootFraction(n, k);
  }
  return roots;
}

constexpr std::array<uint32_t, 8> kInitial = RootsOfPrimes<8>(2);
constexpr std::array<uint32_t, 64> kRound = RootsOfPrimes<64>(3);
static_assert(kInitial[0] == 0x6a09e667 && kRound[63] == 0xc67178f2);

void Compress(std::array<uint32_t, 8>& state, const unsigned char* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) {
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (size_t i = 16; i < 64; ++i) {
    uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t add[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += add[i];
}

}  // namespace

std::string Sha256Hex(std::string_view data) {
  std::array<uint32_t, 8> state = kInitial;
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  size_t rest = data.size();
  for (; rest >= kBlock; rest -= kBlock, bytes += kBlock) Compress(state, bytes);

  // Padding: one bit, zeros, the length in bits; one or two blocks.
  std::array<unsigned char, 2 * kBlock> tail{};
  if (rest) std::memcpy(tail.data(), bytes, rest);
  tail[rest] = 0x80;
  size_t blocks = rest + 9 <= kBlock ? 1 : 2;
  uint64_t bits = uint64_t{data.size()} * 8;
  for (size_t i = 0; i < 8; ++i)
    tail[blocks * kBlock - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (size_t i = 0; i < blocks; ++i) Compress(state, tail.data() + i * kBlock);

  std::string hex;
  constexpr char kDigits[] = "0123456789abcdef";
  for (uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += kDigits[word >> shift & 15];
  }
  return hex;
}

}  // namespace vabi::facts
