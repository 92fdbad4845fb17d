//! Connections: TLS, HTTP/1.1 and HTTP/2, and the bodies of answers.
//!
//! What a request means is decided in [`crate::handler`]; this module only carries it there and back.

mod body;
mod gzip;
mod request;
mod serve;

pub use self::{
    body::Body,
    gzip::Gzip,
    request::{RequestInfo, ResourcePath},
    serve::{Peer, Server, Service},
};
