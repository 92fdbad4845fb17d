//! An operator whose work is one trace: the example of `kubewake-trail`.
//!
//! A [`Head`](api::Head) is made of [`ChildA`](api::ChildA) objects, each of which is made of a Deployment. Status goes up the same way. The README shows
//! the trace that comes of one `kubectl apply`.

pub mod api;
pub mod child;
pub mod cli;
pub mod context;
pub mod head;
pub mod labels;
pub mod manifests;
pub mod operator;
pub mod ready;
pub mod written;
