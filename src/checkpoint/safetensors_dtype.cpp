#include "safetensors_dtype.hpp"

#include <algorithm>
#include <array>

#include "strata/core/error.hpp"

namespace strata {
namespace {

// In the order of the format's own list, by which its writer sorts.
constexpr std::array<SafetensorsDType, 22> known{{{"BOOL", 8, std::nullopt},
                                                  {"F4", 4, std::nullopt},
                                                  {"F6_E2M3", 6, std::nullopt},
                                                  {"F6_E3M2", 6, std::nullopt},
                                                  {"U8", 8, DType::u8},
                                                  {"I8", 8, std::nullopt},
                                                  {"F8_E5M2", 8, std::nullopt},
                                                  {"F8_E4M3", 8, std::nullopt},
                                                  {"F8_E8M0", 8, std::nullopt},
                                                  {"F8_E4M3FNUZ", 8, std::nullopt},
                                                  {"F8_E5M2FNUZ", 8, std::nullopt},
                                                  {"I16", 16, std::nullopt},
                                                  {"U16", 16, DType::u16},
                                                  {"F16", 16, DType::f16},
                                                  {"BF16", 16, DType::bf16},
                                                  {"I32", 32, DType::i32},
                                                  {"U32", 32, std::nullopt},
                                                  {"F32", 32, DType::f32},
                                                  {"C64", 64, std::nullopt},
                                                  {"F64", 64, DType::f64},
                                                  {"I64", 64, std::nullopt},
                                                  {"U64", 64, std::nullopt}}};

auto entry_of(DType dtype) {
  const auto* found = std::ranges::find(known, std::optional(dtype), &SafetensorsDType::dtype);
  ensure(found != known.end());
  return found;
}

}  // namespace

const SafetensorsDType* find_safetensors_dtype(std::string_view name) {
  const auto* found = std::ranges::find(known, name, &SafetensorsDType::name);
  return found == known.end() ? nullptr : found;
}

std::string_view safetensors_name(DType dtype) { return entry_of(dtype)->name; }

int safetensors_rank(DType dtype) { return static_cast<int>(entry_of(dtype) - known.begin()); }

bool is_weight_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace strata
