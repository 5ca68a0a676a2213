#include "support/toy_program.hpp"

#include <fmt/format.h>

#include <vector>

namespace strata::testing {
namespace {

class Builder {
 public:
  explicit Builder(const ToyShape& shape) : shape_(shape) {}

  Program build() {
    program_.tile_elements = shape_.tile_elements;
    program_.contribution_dtype = shape_.contribution_dtype;
    program_.world = shape_.world;
    program_.rank = shape_.rank;
    program_.zero_stage = shape_.zero_stage;
    for (int block = 0; block < num_blocks(); ++block) {
      program_.blocks.push_back(fmt::format("block{}", block));
      weights_.push_back(add(Role::weight, block, -1, DType::f32, elements(block)));
      gradients_.push_back(add(Role::gradient, block, -1, DType::f32, elements(block)));
    }
    for (int m = 0; m < shape_.micro_batches; m += shape_.group) group(m);
    optimizer();
    program_.sequences.push_back(train_);
    score();
    return program_;
  }

 private:
  int num_blocks() const { return shape_.layers + 2; }
  int head() const { return shape_.layers + 1; }
  bool keeps(int block) const { return block > 0 && block > shape_.layers - shape_.kept_layers; }
  std::int64_t elements(int block) const {
    if (block == 0) return shape_.embedding_elements;
    return block == head() ? 128 : shape_.layer_elements;
  }

  static ShardId at(const std::vector<ShardId>& shards, int block) {
    return shards[static_cast<std::size_t>(block)];
  }

  ShardId add(Role role, int block, int micro_batch, DType dtype, std::int64_t count) {
    Shard shard;
    shard.role = role;
    shard.block = block;
    shard.micro_batch = micro_batch;
    shard.dtype = dtype;
    shard.count = count;
    shard.name = fmt::format("{}/{}{}", role_name(role), block,
                             micro_batch < 0 ? "" : fmt::format("#{}", micro_batch));
    return program_.add(micro_batch < 0 ? program_.shared(std::move(shard)) : std::move(shard));
  }

  void segment(Sequence& sequence, SegmentKind kind, int block, int micro_batch,
               std::vector<Use> uses) {
    Segment s;
    s.kind = kind;
    s.block = block;
    s.micro_batch = micro_batch;
    s.uses = std::move(uses);
    s.scratch_bytes = 512;
    s.name = fmt::format("{} block{} micro-batch {}", segment_kind_name(kind), block, micro_batch);
    sequence.segments.push_back(program_.add(std::move(s)));
  }

  struct MicroBatch {
    int index;
    ShardId input, loss;
    std::vector<ShardId> acts, grads, saved;  // by block; of layers that keep nothing: invalid
  };

  MicroBatch micro_batch(int m) {
    const std::int64_t count = shape_.tokens * shape_.hidden;
    MicroBatch added{m,
                     add(Role::input, -1, m, DType::i32, 3 * shape_.tokens),
                     add(Role::metric, head(), m, DType::f64, 1),
                     {},
                     {},
                     {}};
    for (int block = 0; block < head(); ++block) {
      added.acts.push_back(add(Role::activation, block, m, DType::f32, count));
      added.grads.push_back(add(Role::activation_gradient, block, m, DType::f32, count));
      added.saved.push_back(keeps(block) ? add(Role::saved, block, m, DType::f32, 3 * count)
                                         : ShardId{});
    }
    return added;
  }

  void group(int first) {
    std::vector<MicroBatch> group;
    for (int i = 0; i < shape_.group; ++i) group.push_back(micro_batch(first + i));
    for (int b = 0; b < head(); ++b)
      for (const MicroBatch& m : group) forward(m, b);
    for (const MicroBatch& m : group) loss(m);
    for (int b = head() - 1; b >= 0; --b)
      for (const MicroBatch& m : group) backward(m, b);
  }

  void forward(const MicroBatch& m, int b) {
    const ShardId before = b == 0 ? m.input : at(m.acts, b - 1);
    std::vector<Use> uses{
        {at(weights_, b), Access::read}, {before, Access::read}, {at(m.acts, b), Access::produce}};
    if (keeps(b)) uses.push_back({at(m.saved, b), Access::produce});
    segment(train_, SegmentKind::forward, b, m.index, uses);
  }

  void loss(const MicroBatch& m) {
    std::vector<Use> uses{{at(weights_, head()), Access::read},
                          {at(m.acts, head() - 1), Access::read},
                          {m.input, Access::read},
                          {m.loss, Access::produce},
                          {at(m.grads, head() - 1), Access::produce},
                          {at(gradients_, head()), Access::accumulate}};
    if (shape_.tied) {
      uses.push_back({at(weights_, 0), Access::read});
      uses.push_back({at(gradients_, 0), Access::accumulate});
    }
    segment(train_, SegmentKind::loss, head(), m.index, uses);
  }

  void backward(const MicroBatch& m, int b) {
    if (b == 0)
      return segment(train_, SegmentKind::backward, 0, m.index,
                     {{m.input, Access::read},
                      {at(m.grads, 0), Access::read},
                      {at(gradients_, 0), Access::accumulate}});
    std::vector<Use> uses{{at(weights_, b), Access::read},
                          {at(m.acts, b - 1), Access::read},
                          {at(m.grads, b), Access::read},
                          {at(m.grads, b - 1), Access::produce},
                          {at(gradients_, b), Access::accumulate}};
    if (keeps(b)) uses.push_back({at(m.saved, b), Access::read});
    segment(train_, SegmentKind::backward, b, m.index, uses);
  }

  void optimizer() {
    Segment norm;
    norm.kind = SegmentKind::norm;
    norm.name = "norm";
    for (ShardId g : gradients_) norm.uses.push_back({g, Access::read});
    train_.segments.push_back(program_.add(norm));
    for (int block = 0; block < num_blocks(); ++block) updates(block);
  }

  void updates(int block) {
    const bool in_place = shape_.update == ToyUpdate::updates_weight;
    std::vector<Use> uses{{at(gradients_, block), Access::read}};
    for (const Role role : {Role::master, Role::moment1, Role::moment2})
      if (role != Role::moment2 || !in_place)
        uses.push_back({add(role, block, -1, DType::f32, elements(block)), Access::update});
    uses.push_back({at(weights_, block), in_place ? Access::update : Access::produce});
    const ShardId master = program_.find(Role::master, block);
    for (int tile = 0; tile < program_.num_tiles(master); ++tile) {
      const int place = program_.place(master, tile);
      for (Use& use : uses) use.tile = program_.tile_at(use.shard, place);
      Segment s;
      s.kind = SegmentKind::update;
      s.block = block;
      s.tile = tile;
      s.name = fmt::format("update block{} tile {}", block, tile);
      s.uses = uses;
      train_.segments.push_back(program_.add(std::move(s)));
    }
  }

  void score() {
    Sequence eval{"eval", {}};
    const ShardId input = program_.find(Role::input, -1, 0);
    for (int b = 0; b < head(); ++b) {
      const ShardId before = b == 0 ? input : program_.find(Role::activation, b - 1, 0);
      segment(eval, SegmentKind::forward, b, 0,
              {{at(weights_, b), Access::read},
               {before, Access::read},
               {program_.find(Role::activation, b, 0), Access::produce}});
    }
    segment(eval, SegmentKind::score, head(), 0,
            {{at(weights_, head()), Access::read},
             {program_.find(Role::activation, head() - 1, 0), Access::read},
             {input, Access::read},
             {program_.find(Role::metric, head(), 0), Access::produce}});
    program_.sequences.push_back(eval);
  }

  ToyShape shape_;
  Program program_;
  Sequence train_{"train", {}};
  std::vector<ShardId> weights_, gradients_;
};

}  // namespace

Program make_toy_program(const ToyShape& shape) { return Builder(shape).build(); }

Program with_split_masters(Program program) {
  for (Shard& shard : program.shards) {
    if (shard.role == Role::weight) shard.dtype = DType::bf16;
    if (shard.role == Role::master) shard.dtype = DType::u16;
    if (shard.role == Role::moment1 || shard.role == Role::moment2) shard.dtype = DType::q8;
  }
  for (Segment& segment : program.segments) {
    if (segment.kind != SegmentKind::update) continue;
    for (Use& use : segment.uses)
      if (use.access == Access::produce) use.access = Access::update;
  }
  return program;
}

}  // namespace strata::testing
