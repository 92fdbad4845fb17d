//! Edits to messages.

use std::sync::Arc;

use bytes::Bytes;

use super::{AttributeChange, RecordEditor, SetCondition, Value};
use crate::view::{DataPoint, RecordRef, Resource};

/// One edit. Cheap to clone: keys and values are shared.
#[derive(Clone, Debug)]
pub struct MessageEdit(pub(super) EditAction);

#[derive(Clone, Debug)]
pub(super) enum EditAction {
    Set { key: Bytes, value: Bytes, when: SetCondition },
    Remove { key: Bytes },
    Rename { from: Bytes, to: Bytes },
    With { change: Arc<dyn AttributeChange> },
    TraceState { value: Bytes },
    Body { value: Bytes },
    Events { change: Arc<dyn AttributeChange> },
}

impl MessageEdit {
    /// Sets an attribute, whether it exists or not. Duplicates of the key are removed.
    pub fn set(key: impl Into<Bytes>, value: impl Into<Value>) -> Self {
        Self::set_when(key, value, SetCondition::Always)
    }

    /// Sets an attribute if it does not exist.
    pub fn insert(key: impl Into<Bytes>, value: impl Into<Value>) -> Self {
        Self::set_when(key, value, SetCondition::Absent)
    }

    /// Sets an attribute if it exists. Duplicates of the key are removed.
    pub fn update(key: impl Into<Bytes>, value: impl Into<Value>) -> Self {
        Self::set_when(key, value, SetCondition::Present)
    }

    /// Removes all attributes with that key.
    pub fn remove(key: impl Into<Bytes>) -> Self {
        Self(EditAction::Remove { key: key.into() })
    }

    /// Renames the attribute `from` to `to`, if it exists. It keeps its position and value; other attributes
    /// `to` and duplicates of `from` are removed.
    pub fn rename(from: impl Into<Bytes>, to: impl Into<Bytes>) -> Self {
        Self(EditAction::Rename { from: from.into(), to: to.into() })
    }

    /// Applies a change that sees the attributes as the edits before it left them.
    pub fn apply_change(change: Arc<dyn AttributeChange>) -> Self {
        Self(EditAction::With { change })
    }

    /// Sets the trace state of a span; an empty one removes it. No effect on other messages.
    pub fn trace_state(value: impl Into<Bytes>) -> Self {
        Self(EditAction::TraceState { value: value.into() })
    }

    /// Sets the body of a log record. No effect on other messages.
    pub fn body(value: impl Into<Value>) -> Self {
        Self(EditAction::Body { value: value.into().encoded() })
    }

    /// Applies a change to the attributes of each event of a span. No effect on other messages.
    pub fn events(change: Arc<dyn AttributeChange>) -> Self {
        Self(EditAction::Events { change })
    }

    fn set_when(key: impl Into<Bytes>, value: impl Into<Value>, when: SetCondition) -> Self {
        Self(EditAction::Set { key: key.into(), value: value.into().encoded(), when })
    }
}

/// Edits of one message, applied in their order, each to the result of the one before.
#[derive(Clone, Debug, Default)]
pub struct EditList(Vec<MessageEdit>);

impl EditList {
    pub fn push(&mut self, edit: MessageEdit) {
        self.0.push(edit);
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[MessageEdit] {
        &self.0
    }
}

impl Extend<MessageEdit> for EditList {
    fn extend<I: IntoIterator<Item = MessageEdit>>(&mut self, edits: I) {
        self.0.extend(edits);
    }
}

/// The same edits for all messages of a type: the simplest editor.
#[derive(Clone, Debug, Default)]
pub struct UniformEditor {
    pub resources: Vec<MessageEdit>,
    /// For every span, log record and data point.
    pub records: Vec<MessageEdit>,
}

impl RecordEditor for UniformEditor {
    fn resource(&mut self, _: Resource<'_>, edits: &mut EditList) {
        edits.extend(self.resources.iter().cloned());
    }

    fn record(&mut self, _: &RecordRef<'_>, edits: &mut EditList) {
        edits.extend(self.records.iter().cloned());
    }

    fn point(&mut self, _: &RecordRef<'_>, _: &DataPoint<'_>, edits: &mut EditList) {
        edits.extend(self.records.iter().cloned());
    }
}
