//! `filter`: drops records.
//!
//! *Guarantees.* What is kept is as it was sent. An entry of which nothing is left goes with its records.

use kubewake_config::model::{self, Match, Selection};
use kubewake_otlp::{Allowance, NoMemory, Signal, retain_within, view::RecordRef};

use super::{
    map::{Mapped, Mapper},
    matching::Matcher,
};
use crate::core::Part;

/// The processor.
pub struct Filter(model::Filter);

impl Filter {
    /// The processor that these settings describe.
    pub fn new(settings: model::Filter) -> Self {
        Self(settings)
    }
}

impl Mapper for Filter {
    fn map(&self, signal: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<Mapped, NoMemory> {
        let Selection { include, exclude } = match signal {
            Signal::Traces => &self.0.spans,
            Signal::Metrics => &self.0.metrics,
            Signal::Logs => &self.0.logs,
        };
        if include.is_empty() && exclude.is_empty() {
            return Ok(Mapped::unchanged(part));
        }
        let mut include = matchers(include);
        let mut exclude = matchers(exclude);
        let is_kept = |record: &RecordRef<'_>| {
            (include.is_empty() || include.iter_mut().any(|rule| rule.matches(record)))
                && !exclude.iter_mut().any(|rule| rule.matches(record))
        };
        retain_within(signal, &part.bytes, is_kept, memory).map(Mapped::from)
    }
}

fn matchers(rules: &[Match]) -> Vec<Matcher<'_>> {
    rules.iter().map(Matcher::new).collect()
}

#[cfg(test)]
mod tests;
