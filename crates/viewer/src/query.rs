//! Queries on traces. Pure: all functions take a snapshot of the store, and the time as an argument.

mod arrange;
mod filter;
mod links;
pub mod objects;
mod otlp;
mod search;
mod services;
mod summary;

pub use arrange::{ArrangedTrace, PlacedSpan, TraceWarning, WarningKind, arrange};
pub use filter::{ObjectFilter, TraceFilter};
pub use links::{IncomingLink, find_incoming_links};
pub use otlp::encode_otlp_json;
pub use search::{SearchResults, search};
pub use services::{ServiceOperations, count_dependencies, list_services};
pub use summary::{TraceSummary, find_root, summarize};

#[cfg(test)]
mod tests;
