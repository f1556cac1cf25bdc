// Named places in the forward pass. Evidence reads there, interventions and injected faults act
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kvlens/error.h"

namespace kvlens {

// In the order of the forward pass; shapes are of one row (one position).
#define KVLENS_STAGES(X)                                                             \
  X(embedding)          /* [d_model] */                                              \
  X(attention_norm)     /* [d_model] */                                              \
  X(q_projection)       /* [n_heads, head_dim], bias included */                     \
  X(k_projection)       /* [n_kv_heads, head_dim], bias included */                  \
  X(v_projection)       /* [n_kv_heads, head_dim], bias included */                  \
  X(q_norm)             /* [n_heads, head_dim]; only with qk_norm */                 \
  X(k_norm)             /* [n_kv_heads, head_dim]; only with qk_norm */              \
  X(q_rope)             /* [n_heads, head_dim] */                                    \
  X(k_rope)             /* [n_kv_heads, head_dim]; what the cache will hold */       \
  X(attention_weights)  /* [n_heads, position + 1]; zero outside a sliding window */ \
  X(head_outputs)       /* [n_heads, head_dim]; merged by concatenation */           \
  X(attention_output)   /* [d_model] */                                              \
  X(attention_residual) /* [d_model] */                                              \
  X(ffn_norm)           /* [d_model] */                                              \
  X(ffn_gate)           /* [d_ff] */                                                 \
  X(ffn_up)             /* [d_ff] */                                                 \
  X(ffn_activation)     /* [d_ff]; SiLU(gate) * up */                                \
  X(ffn_output)         /* [d_model] */                                              \
  X(ffn_residual)       /* [d_model] */                                              \
  X(final_norm)         /* [d_model] */                                              \
  X(logits)             /* [vocab_size] */

enum class Stage : std::uint8_t {
#define KVLENS_STAGE_ENUM(name) name,
  KVLENS_STAGES(KVLENS_STAGE_ENUM)
#undef KVLENS_STAGE_ENUM
};

[[nodiscard]] std::string_view stage_name(Stage stage) noexcept;

struct StageSite {
  Stage stage;
  std::size_t layer;     // n_layers for final_norm and logits, 0 for embedding
  std::size_t position;  // of the row, from 0
};

// Called once a row at each stage it `wants`, on the calling thread, in order of layer, stage and
// row within a chunk. It may read or overwrite `values` (they are what the next stage computes
// with). An error that it returns fails the call, which then leaves the session as it was. A
// session without a tap does no work for any of this.
template <class T>
class StageTap {
 public:
  virtual ~StageTap() = default;
  [[nodiscard]] virtual bool wants(Stage stage, std::size_t layer) const noexcept = 0;
  [[nodiscard]] virtual Result<void> at(const StageSite& site, std::span<T> values) = 0;
};

}  // namespace kvlens
