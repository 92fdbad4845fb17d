//! Label and field selectors, of lists, watches and objects.
//!
//! The text forms are parsed as in kube-apiserver, with its messages. Matching never fails.

mod field;
mod label;
mod lexer;
mod parser;

#[cfg(test)]
mod tests;

pub use self::{
    field::{FieldSelector, FieldTerm},
    label::{LabelRequirement, LabelSelector, SelectorOperator},
};
