//! `filter`: drops records.
//!
//! *Guaranteed*: records that are kept are unchanged. An entry without remaining records is removed with them.

use kubewake_config::model::{self, MatchProperties, RecordSelection};
use kubewake_otlp::{Allowance, NoMemory, Signal, retain_within, view::RecordRef};

use super::{
    matching::RecordMatcher,
    transform::{RequestTransform, TransformedRequest},
};
use crate::{
    components::{BuildError, PreparedProcessor, ProcessorContext},
    core::Part,
};

pub(crate) fn prepare(
    settings: &model::FilterProcessor,
    _: &ProcessorContext<'_>,
) -> Result<PreparedProcessor, BuildError> {
    let settings = settings.clone();
    Ok(PreparedProcessor::transform(|_, _| FilterTransform::new(settings)))
}

pub struct FilterTransform(model::FilterProcessor);

impl FilterTransform {
    pub fn new(settings: model::FilterProcessor) -> Self {
        Self(settings)
    }
}

impl RequestTransform for FilterTransform {
    fn transform(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<TransformedRequest, NoMemory> {
        let RecordSelection { include, exclude } = match signal {
            Signal::Traces => &self.0.spans,
            Signal::Metrics => &self.0.metrics,
            Signal::Logs => &self.0.logs,
        };
        if include.is_empty() && exclude.is_empty() {
            return Ok(TransformedRequest::unchanged(part));
        }
        let mut include = matchers(include);
        let mut exclude = matchers(exclude);
        let is_kept = |record: &RecordRef<'_>| {
            (include.is_empty() || include.iter_mut().any(|rule| rule.matches(record)))
                && !exclude.iter_mut().any(|rule| rule.matches(record))
        };
        retain_within(signal, &part.bytes, is_kept, memory).map(TransformedRequest::from)
    }
}

fn matchers(rules: &[MatchProperties]) -> Vec<RecordMatcher<'_>> {
    rules.iter().map(RecordMatcher::new).collect()
}

#[cfg(test)]
mod tests;
