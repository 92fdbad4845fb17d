//! Network code that several components share.

#[cfg(feature = "client")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod compress;
#[cfg(feature = "client")]
#[cfg_attr(not(feature = "full"), allow(dead_code, unused_imports, reason = "a component uses the part that it needs"))]
pub(crate) mod connect;
#[cfg(feature = "server")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod decompress;
#[cfg(feature = "client")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod destination_url;
#[cfg(feature = "client")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod http_destination;
#[cfg(feature = "client")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod http_error;
pub mod listener;
pub mod listener_pool;
#[cfg(feature = "server")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod local_executor;
#[cfg(feature = "server")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod poll_on_wake;
#[cfg(feature = "server")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod reply_body;
#[cfg(feature = "client")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod request;
#[cfg(feature = "client")]
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "a component uses the part that it needs"))]
pub(crate) mod response_status;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tls;
