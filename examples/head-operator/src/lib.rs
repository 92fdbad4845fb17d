//! An operator whose work is one trace: the example of `kubewake-trail`.
//!
//! A [`Head`](api::Head) has [`ChildA`](api::ChildA) children, and each of these has a Deployment. Status is
//! aggregated in the other direction. The README shows the trace of one `kubectl apply`.

pub mod api;
pub mod child;
pub mod cli;
pub mod context;
pub mod head;
pub mod labels;
pub mod manifests;
pub mod operator;
pub mod ready;
