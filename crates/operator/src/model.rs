//! Names, labels and kinds of everything that the operator creates. Pure; uses no other folder.

pub mod names;
pub mod object_kind;
