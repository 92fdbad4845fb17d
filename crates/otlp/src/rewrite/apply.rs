//! Changes to the bytes of one message.

use super::edits::{Action, Edit};
use super::list::{AttributeList, Change, Memory};
use crate::numbers::{event, log, span};
use crate::wire::{Field, Fields, put_bytes};

/// Where in a message the things are that can be changed.
#[derive(Clone, Copy)]
pub(super) struct Target {
    attributes: u32,
    trace_state: Option<u32>,
    body: Option<u32>,
    events: Option<u32>,
}

impl Target {
    pub(super) const SPAN: Self =
        Self { trace_state: Some(span::TRACE_STATE), events: Some(span::EVENTS), ..Self::attributes(span::ATTRIBUTES) };
    pub(super) const LOG_RECORD: Self = Self { body: Some(log::BODY), ..Self::attributes(log::ATTRIBUTES) };

    /// A message of which only the attributes in this field can be changed.
    pub(super) const fn attributes(number: u32) -> Self {
        Self { attributes: number, trace_state: None, body: None, events: None }
    }
}

/// What is needed to change messages, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    attributes: Memory,
    events: Memory,
    event: Vec<u8>,
}

/// What stands in a message instead of what stood there, beside its attributes.
#[derive(Default)]
struct Replaced<'e> {
    /// The field, with its new content.
    trace_state: Option<(u32, &'e [u8])>,
    body: Option<(u32, &'e [u8])>,
    /// The field of the events, and what happens to their attributes.
    events: Option<(u32, &'e dyn Change)>,
}

/// Writes the content of `message` with the edits done, unless there was nothing to do. All other fields stay as they are; the
/// attributes stand together where the first of them was. A message that is not well formed stays as it is.
pub(super) fn apply(edits: &[Edit], message: &[u8], target: Target, work: &mut Workspace, out: &mut Vec<u8>) -> bool {
    let Workspace { attributes, events, event } = work;
    let Some(mut attributes) = AttributeList::read(message, target.attributes, attributes) else { return false };
    let mut replaced = Replaced::default();
    for Edit(action) in edits {
        match action {
            Action::Set { key, value, when } => attributes.put(key, *when, |new| new.extend_from_slice(value)),
            Action::Remove { key } => attributes.remove(key),
            Action::Rename { from, to } => attributes.rename(from, to),
            Action::With { change } => change.change(&mut attributes),
            Action::TraceState { value } => {
                replaced.trace_state = target.trace_state.map(|number| (number, value.as_ref()));
            }
            Action::Body { value } => replaced.body = target.body.map(|number| (number, value.as_ref())),
            Action::Events { change } => replaced.events = target.events.map(|number| (number, change.as_ref())),
        }
    }
    if !attributes.is_changed() && replaced.is_empty() {
        return false;
    }
    out.clear();
    let stays = |field: &Field<'_>| {
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

impl<'e> Replaced<'e> {
    fn fields(&self) -> impl Iterator<Item = (u32, &'e [u8])> {
        self.trace_state.into_iter().chain(self.body)
    }

    fn is_empty(&self) -> bool {
        self.fields().next().is_none() && self.events.is_none()
    }
}

/// Writes a message with these attributes. Of the other fields those that stay are copied, neighbours as one, and `put` writes what
/// stands instead of the rest.
fn write(
    message: &[u8],
    number: u32,
    attributes: &AttributeList<'_>,
    out: &mut Vec<u8>,
    stays: impl Fn(&Field<'_>) -> bool,
    mut put: impl FnMut(&Field<'_>, &mut Vec<u8>),
) {
    let mut attributes = Some(attributes);
    let mut fields = Fields::new(message);
    let (mut run, mut at) = (message, message);
    while let Some(field) = fields.next() {
        let is_attribute = field.is_len(number);
        if is_attribute || !stays(&field) {
            out.extend_from_slice(run.get(..run.len() - at.len()).unwrap_or_default());
            match is_attribute {
                true => attributes.take().into_iter().for_each(|attributes| attributes.put_all(number, out)),
                false => put(&field, out),
            }
            run = fields.rest();
        }
        at = fields.rest();
    }
    out.extend_from_slice(run);
    attributes.take().into_iter().for_each(|attributes| attributes.put_all(number, out));
}

/// Writes an event of a span with its attributes changed.
fn put_event(field: &Field<'_>, change: &dyn Change, memory: &mut Memory, event: &mut Vec<u8>, out: &mut Vec<u8>) {
    let changed = AttributeList::read(field.value, event::ATTRIBUTES, memory).and_then(|mut attributes| {
        change.change(&mut attributes);
        attributes.is_changed().then_some(attributes)
    });
    let Some(attributes) = changed else { return out.extend_from_slice(field.raw) };
    event.clear();
    write(field.value, event::ATTRIBUTES, &attributes, event, |_| true, |_, _| {});
    put_bytes(out, field.number, event);
}
