//! The types that every part of the server shares: names, objects, field errors and `Status` answers.

pub mod field;
pub mod go_format;
pub mod identity;
pub mod meta;
pub mod names;
pub mod status;
pub mod text;
pub mod webhook_client;

pub use serde_json::{Map, Value};

pub use self::{
    names::{GroupKind, GroupResource, GroupVersion, ObjectKey},
    status::StatusError,
};
