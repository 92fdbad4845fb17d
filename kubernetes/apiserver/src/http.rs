//! Connections: TLS, HTTP/1.1 and HTTP/2, and response bodies.
//!
//! Requests are interpreted in [`crate::handler`]; this module only transports them and their responses.

mod body;
mod gzip;
mod request;
mod serve;

pub use self::{
    body::Body,
    gzip::GzipChunks,
    request::{RequestInfo, ResourcePath},
    serve::{ClientPeer, HttpService, HttpsServer},
};
