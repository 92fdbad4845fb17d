//! What each request does, from its arrival to its answer.
//!
//! The order of the filters is kube-apiserver's: authentication, then the server span, then impersonation, authorization and the
//! handler. A handler gets a [`call::On`] and gives an [`answer::Answer`]; how that is written depends on what the caller accepts.

pub mod answer;
mod body;
pub mod call;
mod create;
mod decode;
mod delete;
mod dispatch;
mod filter;
mod filters;
mod form;
mod get;
pub mod heavy;
pub mod in_flight;
pub mod internal;
mod listing;
mod metadata;
mod other;
mod patch;
mod pods;
mod priority;
mod respond;
mod review;
mod scale;
mod size;
mod spans;
mod subresource;
mod update;
mod validate;
mod watch;

pub use self::filters::{Front, TRUSTED};
