//! `resource`: changes the attributes of resources, by the actions of [`attributes`](super::attributes).

use kubewake_config::model;
use kubewake_otlp::{Allowance, EditList, MessageEdit, NoMemory, RecordEditor, Signal, rewrite_within, view::Resource};

use super::{
    attributes::actions::AttributeActions,
    transform::{RequestTransform, TransformedRequest},
};
use crate::{
    components::{BuildError, PreparedProcessor, ProcessorContext},
    core::Part,
};

pub(crate) fn prepare(
    settings: &model::ResourceProcessor,
    _: &ProcessorContext<'_>,
) -> Result<PreparedProcessor, BuildError> {
    let settings = settings.clone();
    Ok(PreparedProcessor::transform(|_, _| ResourceTransform::new(settings)))
}

pub struct ResourceTransform {
    actions: AttributeActions,
}

impl ResourceTransform {
    pub fn new(settings: model::ResourceProcessor) -> Self {
        Self { actions: AttributeActions::new(settings.actions) }
    }
}

impl RequestTransform for ResourceTransform {
    fn transform(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<TransformedRequest, NoMemory> {
        let mut editor = ResourceAttributesEditor { edit: self.actions.edit(&part.origin) };
        let bytes = rewrite_within(signal, &part.bytes, &mut editor, memory)?;
        Ok(TransformedRequest { bytes, items: part.items })
    }
}

struct ResourceAttributesEditor {
    edit: MessageEdit,
}

impl RecordEditor for ResourceAttributesEditor {
    fn resource(&mut self, _: Resource<'_>, edits: &mut EditList) {
        edits.push(self.edit.clone());
    }
}
