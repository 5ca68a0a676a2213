#pragma once
// How a struct takes part in a report's JSON: it is declared once, by a list of its keys with the
// members they hold, list_fields(fields, value). Writing and reading walk the same list, so what is
// written can be read. fields.derived() adds what follows from the members: written, not read;
// fields.added() what reports of this version had not from the start: absent, it is empty.

#include <type_traits>

namespace strata {

template <class T>
inline constexpr bool has_report_fields = false;
// An enum with choice_name(value) and parse_choice(text, value), which throws ConfigError.
template <class T>
inline constexpr bool is_report_choice = false;

template <class T>
concept HasReportFields = has_report_fields<T>;
template <class T>
concept IsReportChoice = is_report_choice<T>;

}  // namespace strata
