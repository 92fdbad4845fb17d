//! `memory_limiter`: bounds the memory of the pipelines that name it.
//!
//! It is no component that data passes through: its limit is the budget that requests are charged to when they
//! arrive.

use kubewake_config::model::{MemoryLimit, MemoryLimiter};

use crate::{
    components::{BuildError, PreparedProcessor, ProcessorContext},
    core::available_memory,
};

pub(crate) fn prepare(settings: &MemoryLimiter, _: &ProcessorContext<'_>) -> Result<PreparedProcessor, BuildError> {
    Ok(match settings.limit {
        MemoryLimit::Bytes { limit, spike } => PreparedProcessor::MemoryBudget { limit, spike },
        MemoryLimit::Percent { limit, spike } => {
            let total = available_memory::available_bytes();
            let share = |percent: u32| total / 100 * u64::from(percent.min(100));
            PreparedProcessor::MemoryBudget { limit: share(limit), spike: share(spike) }
        }
    })
}
