//! `attributes`: changes the attributes of records.
//!
//! *Guaranteed*: actions are applied in their order, each to the result of the one before. Everything else
//! stays as it was sent, and a request that no action changes is not copied.

pub(super) mod actions;

use kubewake_config::model;
use kubewake_otlp::{
    Allowance, EditList, MessageEdit, NoMemory, RecordEditor, Signal, rewrite_within,
    view::{DataPoint, RecordRef},
};

use self::actions::AttributeActions;
use super::{
    matching::RecordMatcher,
    transform::{RequestTransform, TransformedRequest},
};
use crate::{
    components::{BuildError, PreparedProcessor, ProcessorContext},
    core::Part,
};

pub(crate) fn prepare(
    settings: &model::AttributesProcessor,
    _: &ProcessorContext<'_>,
) -> Result<PreparedProcessor, BuildError> {
    let settings = settings.clone();
    Ok(PreparedProcessor::transform(|_, _| AttributesTransform::new(settings)))
}

pub struct AttributesTransform {
    include: Option<model::MatchProperties>,
    exclude: Option<model::MatchProperties>,
    actions: AttributeActions,
}

impl AttributesTransform {
    pub fn new(settings: model::AttributesProcessor) -> Self {
        let model::AttributesProcessor { include, exclude, actions } = settings;
        Self { include, exclude, actions: AttributeActions::new(actions) }
    }
}

impl RequestTransform for AttributesTransform {
    fn transform(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<TransformedRequest, NoMemory> {
        let mut editor = RecordAttributesEditor {
            include: self.include.as_ref().map(RecordMatcher::new),
            exclude: self.exclude.as_ref().map(RecordMatcher::new),
            edit: self.actions.edit(&part.origin),
        };
        let bytes = rewrite_within(signal, &part.bytes, &mut editor, memory)?;
        Ok(TransformedRequest { bytes, items: part.items })
    }
}

struct RecordAttributesEditor<'m> {
    include: Option<RecordMatcher<'m>>,
    exclude: Option<RecordMatcher<'m>>,
    edit: MessageEdit,
}

impl RecordAttributesEditor<'_> {
    fn is_selected(&mut self, record: &RecordRef<'_>) -> bool {
        self.include.as_mut().is_none_or(|include| include.matches(record))
            && !self.exclude.as_mut().is_some_and(|exclude| exclude.matches(record))
    }
}

impl RecordEditor for RecordAttributesEditor<'_> {
    fn record(&mut self, record: &RecordRef<'_>, edits: &mut EditList) {
        if self.is_selected(record) {
            edits.push(self.edit.clone());
        }
    }

    fn point(&mut self, metric: &RecordRef<'_>, _: &DataPoint<'_>, edits: &mut EditList) {
        self.record(metric, edits);
    }
}
