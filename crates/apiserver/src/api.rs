//! The vocabulary that every part of the server speaks: names, objects, field errors and Status answers.

pub mod field;
pub mod go;
pub mod identity;
pub mod meta;
pub mod names;
pub mod status;
pub mod text;

pub use serde_json::{Map, Value};

pub use self::{
    names::{GroupKind, GroupResource, GroupVersion, ObjectKey},
    status::Status,
};
