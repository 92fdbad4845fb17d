//! `filter`: drops records.
//!
//! *Guarantees.* What is kept is as it was sent. An entry of which nothing is left goes with its records.

use kubewake_config::model::{self, Match, Selection};
use kubewake_otlp::{Signal, retain};

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
    fn map(&self, signal: Signal, part: &Part) -> Mapped {
        let Selection { include, exclude } = match signal {
            Signal::Traces => &self.0.spans,
            Signal::Metrics => &self.0.metrics,
            Signal::Logs => &self.0.logs,
        };
        if include.is_empty() && exclude.is_empty() {
            return Mapped::unchanged(part);
        }
        let mut include = matchers(include);
        let mut exclude = matchers(exclude);
        let kept = retain(signal, &part.bytes, |record| {
            (include.is_empty() || include.iter_mut().any(|rule| rule.matches(record)))
                && !exclude.iter_mut().any(|rule| rule.matches(record))
        });
        kept.into()
    }
}

fn matchers(rules: &[Match]) -> Vec<Matcher<'_>> {
    rules.iter().map(Matcher::new).collect()
}

#[cfg(test)]
mod tests;
