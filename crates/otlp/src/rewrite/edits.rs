//! What to change.

use std::sync::Arc;

use bytes::Bytes;

use super::{Change, Editor, Value, When};
use crate::view::{Point, RecordRef, Resource};

/// One change. Cheap to clone: keys and values are shared.
#[derive(Clone, Debug)]
pub struct Edit(pub(super) Action);

#[derive(Clone, Debug)]
pub(super) enum Action {
    Set { key: Bytes, value: Bytes, when: When },
    Remove { key: Bytes },
    Rename { from: Bytes, to: Bytes },
    With { change: Arc<dyn Change> },
    TraceState { value: Bytes },
    Body { value: Bytes },
    Events { change: Arc<dyn Change> },
}

impl Edit {
    /// Sets an attribute, whether it is there or not. Further attributes with that key go.
    pub fn set(key: impl Into<Bytes>, value: impl Into<Value>) -> Self {
        Self::set_when(key, value, When::Always)
    }

    /// Sets an attribute if it is not there.
    pub fn insert(key: impl Into<Bytes>, value: impl Into<Value>) -> Self {
        Self::set_when(key, value, When::Absent)
    }

    /// Sets an attribute if it is there. Further attributes with that key go.
    pub fn update(key: impl Into<Bytes>, value: impl Into<Value>) -> Self {
        Self::set_when(key, value, When::Present)
    }

    /// Removes all attributes with that key.
    pub fn remove(key: impl Into<Bytes>) -> Self {
        Self(Action::Remove { key: key.into() })
    }

    /// Gives the attribute `from` the key `to`, if it is there. It keeps its place and value; any other attribute `to`
    /// goes, and so do further attributes `from`.
    pub fn rename(from: impl Into<Bytes>, to: impl Into<Bytes>) -> Self {
        Self(Action::Rename { from: from.into(), to: to.into() })
    }

    /// Does what the change says to the attributes as they are when its turn comes.
    pub fn with(change: Arc<dyn Change>) -> Self {
        Self(Action::With { change })
    }

    /// Sets the trace state of a span; an empty one removes it. Does nothing on anything but a span.
    pub fn trace_state(value: impl Into<Bytes>) -> Self {
        Self(Action::TraceState { value: value.into() })
    }

    /// Sets the body of a log record. Does nothing on anything else.
    pub fn body(value: impl Into<Value>) -> Self {
        Self(Action::Body { value: value.into().encoded() })
    }

    /// Does what the change says to the attributes of each event of a span. Does nothing on anything else.
    pub fn events(change: Arc<dyn Change>) -> Self {
        Self(Action::Events { change })
    }

    fn set_when(key: impl Into<Bytes>, value: impl Into<Value>, when: When) -> Self {
        Self(Action::Set { key: key.into(), value: value.into().encoded(), when })
    }
}

/// Changes to one message, done in their order, each on what the one before left.
#[derive(Clone, Debug, Default)]
pub struct Edits(Vec<Edit>);

impl Edits {
    /// Adds a change.
    pub fn push(&mut self, edit: Edit) {
        self.0.push(edit);
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[Edit] {
        &self.0
    }
}

impl Extend<Edit> for Edits {
    fn extend<I: IntoIterator<Item = Edit>>(&mut self, edits: I) {
        self.0.extend(edits);
    }
}

/// The same changes to everything: the simplest editor.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// For every resource.
    pub resources: Vec<Edit>,
    /// For every span, log record and data point.
    pub records: Vec<Edit>,
}

impl Editor for Rules {
    fn resource(&mut self, _: Resource<'_>, edits: &mut Edits) {
        edits.extend(self.resources.iter().cloned());
    }

    fn record(&mut self, _: &RecordRef<'_>, edits: &mut Edits) {
        edits.extend(self.records.iter().cloned());
    }

    fn point(&mut self, _: &RecordRef<'_>, _: &Point<'_>, edits: &mut Edits) {
        edits.extend(self.records.iter().cloned());
    }
}
