#include "config_choices.hpp"

namespace strata {
namespace {

std::string use_q8_with(const std::string& optimizer) {
  return "use optim: " + optimizer + " with optimizer_moments: q8 for 8-bit moments";
}

}  // namespace

const Choices<RowLayout> layouts{
    .names = {{"windows", RowLayout::windows},
              {"packed", RowLayout::packed},
              {"separate", RowLayout::separate}},
    .aliases = {{"true", RowLayout::packed}, {"false", RowLayout::separate}},
    .refusals = {}};

const Choices<UpdateRule> optimizers{
    .names = {{"adamw", UpdateRule::adamw},
              {"adam", UpdateRule::adam},
              {"sgd", UpdateRule::sgd},
              {"lion", UpdateRule::lion}},
    .aliases = {{"adamw_torch", UpdateRule::adamw},
                {"adamw_torch_fused", UpdateRule::adamw},
                {"adamw_torch_xla", UpdateRule::adamw},
                {"adamw_torch_npu_fused", UpdateRule::adamw},
                {"adamw_apex_fused", UpdateRule::adamw},
                {"adamw_hf", UpdateRule::adamw},
                {"paged_adamw", UpdateRule::adamw},
                {"paged_adamw_32bit", UpdateRule::adamw},
                {"lion_32bit", UpdateRule::lion},
                {"paged_lion", UpdateRule::lion},
                {"paged_lion_32bit", UpdateRule::lion}},
    .refusals = {
        {"adamw_8bit", use_q8_with("adamw")},
        {"adamw_bnb_8bit", use_q8_with("adamw")},
        {"adamw_torch_8bit", use_q8_with("adamw")},
        {"paged_adamw_8bit", use_q8_with("adamw")},
        {"lion_8bit", use_q8_with("lion")},
        {"paged_lion_8bit", use_q8_with("lion")},
        {"adamw_torch_4bit", "moments have at least 8 bits; use adamw with optimizer_moments: q8"},
        {"adamw_anyprecision", "use adamw with optimizer_moments: bf16"},
        {"adafactor",
         "its factored second moment needs whole matrices, and tiles are updated one by one; use "
         "adamw with optimizer_moments: q8, which is as small"},
        {"muon",
         "it orthogonalises whole matrices, and tiles are updated one by one; use adamw or lion"},
        {"galore_*",
         "it projects whole matrices, and tiles are updated one by one; use adamw with smaller or "
         "offloaded state"},
        {"apollo_*",
         "it projects whole matrices, and tiles are updated one by one; use adamw with smaller or "
         "offloaded state"},
        {"lomo", "use sgd; with max_grad_norm: 0 it updates during backward as well"},
        {"adalomo", "its factored second moment needs whole matrices; use adamw"},
        {"ademamix*", "it keeps a third moment, which is not implemented; use adamw"},
        {"paged_ademamix*", "it keeps a third moment, which is not implemented; use adamw"},
        {"schedule_free_*", "it is not implemented; use adamw with a schedule"},
        {"stable_adamw", "it is not implemented; use adamw with max_grad_norm"},
        {"grokadamw", "it is not implemented; use adamw"},
        {"rmsprop*", "it is not implemented; use adam"},
        {"adagrad", "it is not implemented; use adam"}}};

const Choices<MasterFormat> master_formats{
    .names = {{"fp32", MasterFormat::f32}, {"split", MasterFormat::split}},
    .aliases = {},
    .refusals = {{"bf16", "updates below half a step of bf16 would be lost; use split"}}};

const Choices<DType> moment_formats{
    .names = {{"fp32", DType::f32}, {"bf16", DType::bf16}, {"q8", DType::q8}},
    .aliases = {{"8bit", DType::q8}},
    .refusals = {{"fp16", "second moments are smaller than fp16 can hold; use bf16"},
                 {"4bit", "moments have at least 8 bits; use q8"}}};

const Choices<std::optional<DType>> export_dtypes{
    .names = {{"bf16", DType::bf16}, {"fp32", DType::f32}},
    .aliases = {},
    .refusals = {{"fp16", "weights may be larger than fp16 can hold; use bf16"}}};

const Choices<ScheduleKind> schedules{
    .names = {schedule_names.begin(), schedule_names.end()},
    .aliases = {},
    .refusals = {
        {"cosine_warmup_with_min_lr", "its warm-up begins above 0; use cosine_with_min_lr"},
        {"reduce_lr_on_plateau", "the rate must be known before the run; use a fixed schedule"},
        {"greedy", "the rate must be known before the run; use a fixed schedule"}}};

const Choices<EvalMoments> eval_strategies{
    .names = {{"no", EvalMoments::never},
              {"steps", EvalMoments::by_steps},
              {"epoch", EvalMoments::by_epochs}},
    .aliases = {{"false", EvalMoments::never}, {"off", EvalMoments::never}},
    .refusals = {{"best", "use steps or epoch; load_best_model_at_end: true keeps the best"}}};

const Choices<NonFinitePolicy> non_finite_policies{
    .names = {{"stop", NonFinitePolicy::stop}, {"skip_step", NonFinitePolicy::skip_step}},
    .aliases = {},
    .refusals = {}};

const Choices<SaveStrategy> save_strategies{
    .names = {{"no", SaveStrategy::no},
              {"steps", SaveStrategy::steps},
              {"epoch", SaveStrategy::epoch}},
    .aliases = {{"false", SaveStrategy::no}},
    .refusals = {{"best",
                  "when a checkpoint is written is known before the run; use steps or epoch with "
                  "load_best_model_at_end: true, which keeps the best of them"}}};

const Choices<BestMetric> best_metrics{
    .names = {{"loss", BestMetric::held_out_loss}},
    .aliases = {{"eval_loss", BestMetric::held_out_loss}},
    .refusals = {{"*", "evaluation takes the loss alone; use loss"}}};

const Choices<SaveFailurePolicy> save_failure_policies{
    .names = {{"continue", SaveFailurePolicy::go_on}, {"stop", SaveFailurePolicy::stop}},
    .aliases = {},
    .refusals = {}};

const Choices<KernelsKind> kernel_kinds{
    .names = {{"cpu", KernelsKind::cpu}, {"ref", KernelsKind::ref}}, .aliases = {}, .refusals = {}};

const Choices<DeviceKind> device_kinds{
    .names = {{"auto", DeviceKind::automatic}, {"gpu", DeviceKind::gpu}, {"cpu", DeviceKind::cpu}},
    .aliases = {{"cuda", DeviceKind::gpu}},
    .refusals = {}};

}  // namespace strata
