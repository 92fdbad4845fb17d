//! Changes to the bytes of one message.

use super::edits::{Action, Edit};
use super::list::{AttributeList, Memory};
use crate::view::View;
use crate::wire::{Fields, put_bytes};

/// Where in a message the things are that can be changed.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// The field of the attributes.
    pub(super) attributes: u32,
    /// The field of the trace state, for a span.
    pub(super) trace_state: Option<u32>,
}

/// Writes the content of `message` with the edits done, unless there was nothing to do. All other fields stay as they are; the
/// attributes stand together where the first of them was. A message that is not well formed stays as it is.
pub(super) fn apply(edits: &[Edit], message: &[u8], target: Target, memory: &mut Memory, out: &mut Vec<u8>) -> bool {
    let Some(mut attributes) = AttributeList::read(message, target.attributes, memory) else { return false };
    let mut trace_state = None;
    for Edit(action) in edits {
        match action {
            Action::Set { key, value, when } => attributes.put(key, *when, |new| new.extend_from_slice(value)),
            Action::Remove { key } => attributes.remove(key),
            Action::Rename { from, to } => attributes.rename(from, to),
            Action::With { change } => change.change(&mut attributes),
            Action::TraceState { value } => trace_state = target.trace_state.map(|number| (number, value.as_ref())),
        }
    }
    if !attributes.is_changed() && trace_state.is_none() {
        return false;
    }
    out.clear();
    write(message, target, &attributes, trace_state, out);
    out != message
}

fn write(
    message: &[u8],
    target: Target,
    attributes: &AttributeList<'_>,
    trace_state: Option<(u32, &[u8])>,
    out: &mut Vec<u8>,
) {
    let mut attributes = Some(attributes);
    let mut put_attributes = |out: &mut Vec<u8>| {
        for attribute in attributes.take().into_iter().flat_map(AttributeList::iter) {
            put_bytes(out, target.attributes, attribute.as_bytes());
        }
    };
    for field in Fields::new(message) {
        if field.is_len(target.attributes) {
            put_attributes(out);
        } else if !trace_state.is_some_and(|(number, _)| field.is_len(number)) {
            out.extend_from_slice(field.raw);
        }
    }
    put_attributes(out);
    if let Some((number, value)) = trace_state.filter(|(_, value)| !value.is_empty()) {
        put_bytes(out, number, value);
    }
}
