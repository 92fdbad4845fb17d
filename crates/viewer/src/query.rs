//! What can be asked of traces. Pure: everything works on a snapshot of the store, with the time as an argument.

mod arrange;
mod dependencies;
mod filter;
mod links;
pub mod objects;
mod otlp;
mod search;
mod services;
mod summary;

pub use arrange::{Arranged, Placed, Warning, WarningKind, arrange};
pub use dependencies::dependencies;
pub use filter::{Filter, ObjectFilter};
pub use links::{LinkFrom, linked_from};
pub use otlp::otlp_json;
pub use search::{Found, search};
pub use services::{Service, services};
pub use summary::{Summary, root, summarize};

#[cfg(test)]
mod tests;
