//! Field ownership: `managedFields` and server-side apply.
//!
//! - [`FieldManager::update`] records the ownership of an ordinary create, update or patch;
//!   [`FieldManager::apply`] merges an applied configuration.
//! - The schema decides the granularity of ownership: atomic lists and maps are owned as a whole, sets by
//!   value, list maps by key.
//! - A field set is never deeper than [`MAX_PATH_ELEMENTS`]; values below that depth belong to the field at
//!   that depth.
//! - Objects are given in the version of the request. For entries of other versions the change is converted to
//!   those versions ([`VersionConverter`]); the entry of a version that no longer exists is dropped.
//! - Nothing here validates an object beyond what apply itself needs, and nothing reads a clock.

mod compare;
mod conflict;
mod element;
mod field_manager;
mod fields_v1;
mod fieldset;
mod last_applied;
mod managed_fields;
mod merge;
mod ownership;
mod prune;
mod reset;
pub mod scale;
mod schema_position;
mod to_field_set;
mod validate;

pub use self::{
    conflict::Conflicts,
    element::{FieldPath, PathElement},
    field_manager::{FieldManager, VersionConverter, default_manager},
    fieldset::{FieldSet, FieldSetNode},
    managed_fields::{
        ManagedFields, ManagedFieldsEntry, ManagedFieldsOperation, ManagerIdentifier, check_managed_fields,
        keep_unchanged_times,
    },
    ownership::FieldManagerError,
    reset::reset_fields,
};

/// The longest path of a field. In an object it is below five levels of JSON, and JSON is decoded to a depth of
/// 127.
pub const MAX_PATH_ELEMENTS: usize = 100;

#[cfg(test)]
mod tests;
