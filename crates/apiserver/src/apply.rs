//! Who owns which field: `managedFields`, and server-side apply.
//!
//! - [`Owner::update`] keeps the books of an ordinary create, update or patch; [`Owner::apply`] merges an applied configuration.
//! - What is a field of its own follows the schema: atomic lists and maps are owned as a whole, sets by value, list maps by key.
//! - A set of fields is never deeper than [`MAX_PATH`]; what is deeper in an object belongs to the field at that depth.
//! - Objects are given in the version of the request. What a write changed is taken from sets of other versions of the kind as those
//!   versions see it ([`Convert`]); a set of a version that is no more goes.
//! - Nothing here checks an object beyond what apply itself needs, and nothing reads a clock.

mod compare;
mod conflict;
mod element;
mod fields_v1;
mod fieldset;
mod last_applied;
mod managed;
mod merge;
mod owner;
mod prune;
mod reset;
pub mod scale;
mod shape;
mod toset;
mod update;
mod validate;

pub use self::{
    conflict::Conflicts,
    element::{Element, Path},
    fieldset::{Node, Set},
    managed::{Entry, Id, Managed, Operation, check_managers, keep_times},
    owner::{Convert, Owner, default_manager},
    reset::reset_fields,
    update::Error,
};

/// The longest path of a field. Five levels of JSON are above it in an object, and JSON text is read to a depth of 127.
pub const MAX_PATH: usize = 100;

#[cfg(test)]
mod tests;
