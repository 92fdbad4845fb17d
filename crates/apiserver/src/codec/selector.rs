//! Selectors: which objects a list, a watch or an object's own selector means.
//!
//! The text forms are read as kube-apiserver reads them, with its words for what is wrong. Matching never fails.

mod field;
mod label;
mod lexer;
mod parser;

#[cfg(test)]
mod tests;

pub use self::{
    field::{FieldSelector, FieldTerm},
    label::{LabelSelector, Operator, Requirement},
};
