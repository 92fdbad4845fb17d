//! Applies edits to the bytes of one message.

use super::attribute_list::{AttributeChange, AttributeList, ListBuffers};
use super::edits::{EditAction, MessageEdit};
use crate::field_numbers::{event, log, span};
use crate::wire::{WireField, WireFields, put_bytes};

/// Numbers of the fields of a message that can be edited.
#[derive(Clone, Copy)]
pub(super) struct EditTarget {
    attributes: u32,
    trace_state: Option<u32>,
    body: Option<u32>,
    events: Option<u32>,
}

impl EditTarget {
    pub(super) const SPAN: Self =
        Self { trace_state: Some(span::TRACE_STATE), events: Some(span::EVENTS), ..Self::attributes(span::ATTRIBUTES) };
    pub(super) const LOG_RECORD: Self = Self { body: Some(log::BODY), ..Self::attributes(log::ATTRIBUTES) };

    /// A message in which only the attributes in this field can be edited.
    pub(super) const fn attributes(number: u32) -> Self {
        Self { attributes: number, trace_state: None, body: None, events: None }
    }
}

/// Buffers to edit messages, reused from one to the next.
#[derive(Debug, Default)]
pub(super) struct EditBuffers {
    attributes: ListBuffers,
    events: ListBuffers,
    event: Vec<u8>,
}

/// Replacements in a message, beside its attributes.
#[derive(Default)]
struct ReplacedFields<'e> {
    /// The field, with its new content.
    trace_state: Option<(u32, &'e [u8])>,
    body: Option<(u32, &'e [u8])>,
    /// The field of the events, and the change to their attributes.
    events: Option<(u32, &'e dyn AttributeChange)>,
}

/// Writes the content of `message` with the edits applied, unless nothing changes. All other fields stay
/// unchanged; the attributes are written together at the position of the first one. A malformed message stays
/// unchanged.
pub(super) fn apply(
    edits: &[MessageEdit],
    message: &[u8],
    target: EditTarget,
    work: &mut EditBuffers,
    out: &mut Vec<u8>,
) -> bool {
    let EditBuffers { attributes, events, event } = work;
    let Some(mut attributes) = AttributeList::read(message, target.attributes, attributes) else { return false };
    let mut replaced = ReplacedFields::default();
    for MessageEdit(action) in edits {
        match action {
            EditAction::Set { key, value, when } => attributes.put(key, *when, |new| new.extend_from_slice(value)),
            EditAction::Remove { key } => attributes.remove(key),
            EditAction::Rename { from, to } => attributes.rename(from, to),
            EditAction::With { change } => change.change(&mut attributes),
            EditAction::TraceState { value } => {
                replaced.trace_state = target.trace_state.map(|number| (number, value.as_ref()));
            }
            EditAction::Body { value } => replaced.body = target.body.map(|number| (number, value.as_ref())),
            EditAction::Events { change } => replaced.events = target.events.map(|number| (number, change.as_ref())),
        }
    }
    if !attributes.is_changed() && replaced.is_empty() {
        return false;
    }
    out.clear();
    let stays = |field: &WireField<'_>| {
        replaced.fields().all(|(number, _)| !field.is_len(number))
            && replaced.events.is_none_or(|(number, _)| !field.is_len(number))
    };
    write(message, target.attributes, &attributes, out, stays, |field, out| {
        if let Some((_, change)) = replaced.events.filter(|(number, _)| field.is_len(*number)) {
            put_event(field, change, events, event, out);
        }
    });
    for (number, value) in replaced.fields().filter(|(_, value)| !value.is_empty()) {
        put_bytes(out, number, value);
    }
    out != message
}

impl<'e> ReplacedFields<'e> {
    fn fields(&self) -> impl Iterator<Item = (u32, &'e [u8])> {
        self.trace_state.into_iter().chain(self.body)
    }

    fn is_empty(&self) -> bool {
        self.fields().next().is_none() && self.events.is_none()
    }
}

/// Writes a message with these attributes. Other fields that stay are copied, consecutive ones at once, and
/// `put` writes the replacements of the rest.
fn write(
    message: &[u8],
    number: u32,
    attributes: &AttributeList<'_>,
    out: &mut Vec<u8>,
    stays: impl Fn(&WireField<'_>) -> bool,
    mut put: impl FnMut(&WireField<'_>, &mut Vec<u8>),
) {
    let mut attributes = Some(attributes);
    let mut fields = WireFields::new(message);
    let mut run = message;
    let mut at = message;
    while let Some(field) = fields.next() {
        let is_attribute = field.is_len(number);
        if is_attribute || !stays(&field) {
            out.extend_from_slice(run.get(..run.len() - at.len()).unwrap_or_default());
            if is_attribute {
                attributes.take().into_iter().for_each(|attributes| attributes.put_all(number, out))
            } else {
                put(&field, out)
            }
            run = fields.rest();
        }
        at = fields.rest();
    }
    out.extend_from_slice(run);
    attributes.take().into_iter().for_each(|attributes| attributes.put_all(number, out));
}

/// Writes an event of a span with changed attributes.
fn put_event(
    field: &WireField<'_>,
    change: &dyn AttributeChange,
    memory: &mut ListBuffers,
    event: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let changed = AttributeList::read(field.value, event::ATTRIBUTES, memory).and_then(|mut attributes| {
        change.change(&mut attributes);
        attributes.is_changed().then_some(attributes)
    });
    let Some(attributes) = changed else { return out.extend_from_slice(field.raw) };
    event.clear();
    write(field.value, event::ATTRIBUTES, &attributes, event, |_| true, |_, _| {});
    put_bytes(out, field.number, event);
}
