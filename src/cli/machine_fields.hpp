#pragma once
// What a machine file holds, each field named once: the reader and the writer both walk these.
// `Fields` is one of them; the profile is const for the writer.

#include "quantity.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

enum class Need : std::uint8_t {
  required,
  optional,  // absent when 0, which machine.hpp says the meaning of
};

template <class Fields, class Accelerator>
void visit_accelerator(Fields& fields, Accelerator& accelerator) {
  fields.text("name", accelerator.name);
  fields.value("memory_bytes", accelerator.memory_bytes, Quantity::bytes);
  fields.value("peak_flops_per_s", accelerator.peak_flops_per_s, Quantity::flops_per_s);
  fields.value("memory_bytes_per_s", accelerator.memory_bytes_per_s, Quantity::bytes_per_s);
  fields.matmul_rates("bf16", accelerator.bf16);
  fields.matmul_rates("f32", accelerator.f32);
  fields.value("attention_efficiency", accelerator.attention_efficiency, Quantity::ratio);
  fields.value("seconds_per_call", accelerator.seconds_per_call, Quantity::seconds, Need::optional);
}

template <class Fields, class Link>
void visit_link(Fields& fields, Link& link) {
  fields.value("up_bytes_per_s", link.up_bytes_per_s, Quantity::bytes_per_s);
  fields.value("down_bytes_per_s", link.down_bytes_per_s, Quantity::bytes_per_s);
  fields.value("both_bytes_per_s", link.both_bytes_per_s, Quantity::bytes_per_s, Need::optional);
}

template <class Fields, class Host>
void visit_host(Fields& fields, Host& host) {
  fields.value("memory_bytes", host.memory_bytes, Quantity::bytes);
  fields.value("cores", host.cores);
  fields.value("memory_bytes_per_s", host.memory_bytes_per_s, Quantity::bytes_per_s);
  fields.update_rates("updates", host.updates);
}

template <class Fields, class Drive>
void visit_drive(Fields& fields, Drive& drive) {
  fields.value("bytes", drive.bytes, Quantity::bytes);
  fields.value("read_bytes_per_s", drive.read_bytes_per_s, Quantity::bytes_per_s);
  fields.value("write_bytes_per_s", drive.write_bytes_per_s, Quantity::bytes_per_s);
  fields.value("mixed_bytes_per_s", drive.mixed_bytes_per_s, Quantity::bytes_per_s, Need::optional);
  fields.value("new_file_bytes_per_s", drive.new_file_bytes_per_s, Quantity::bytes_per_s,
               Need::optional);
  fields.value("endurance_bytes", drive.endurance_bytes, Quantity::bytes, Need::optional);
}

template <class Fields, class Comm>
void visit_comm(Fields& fields, Comm& comm) {
  fields.value("gather_bytes_per_s", comm.gather_bytes_per_s, Quantity::bytes_per_s);
  fields.value("reduce_bytes_per_s", comm.reduce_bytes_per_s, Quantity::bytes_per_s);
  fields.value("seconds_per_call", comm.seconds_per_call, Quantity::seconds, Need::optional);
}

template <class Fields, class Machine>
void visit_machine(Fields& fields, Machine& machine) {
  fields.text("name", machine.name);
  fields.ranks("ranks", machine.ranks);
  fields.section("accelerator",
                 [&](auto& inner) { visit_accelerator(inner, machine.accelerator); });
  fields.section("link", [&](auto& inner) { visit_link(inner, machine.link); });
  fields.section("host", [&](auto& inner) { visit_host(inner, machine.host); });
  fields.drives("drives", machine.drives);
  // One rank has nobody to talk to.
  const bool talks = machine.ranks > 1 || machine.comm.gather_bytes_per_s > 0;
  fields.section(
      "comm", [&](auto& inner) { visit_comm(inner, machine.comm); },
      talks ? Need::required : Need::optional);
}

// "drives[2].": of the sources of one drive.
std::string drive_prefix(std::size_t drive);

}  // namespace strata
