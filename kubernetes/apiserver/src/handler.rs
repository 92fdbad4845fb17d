//! The handling of a request, from its arrival to its response.
//!
//! The order of the filters is kube-apiserver's: authentication, then the server span, then impersonation,
//! authorization and the handler. A handler gets a [`call::ResourceRequest`] and returns a
//! [`handler_response::HandlerResponse`]; its encoding depends on what the caller accepts.

pub mod call;
mod create;
mod decode;
mod delete;
mod dispatch;
mod filters;
mod get;
pub mod handler_response;
pub mod heavy_work;
pub mod in_flight;
mod list_encoder;
pub mod loopback;
mod metadata;
mod namespace_defaults;
mod non_resource;
mod patch;
mod pods;
mod priority;
mod request_body;
mod respond;
mod review;
mod scale;
mod selection_predicate;
mod size_limit;
mod spans;
mod subresource;
mod transform;
mod update;
mod validate;
mod watch;

pub use self::filters::{ApiService, DEFAULT_TRUSTED_GROUPS};
