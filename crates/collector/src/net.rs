//! Network code that several components share.

pub(crate) mod compress;
pub(crate) mod connect;
pub(crate) mod decompress;
pub(crate) mod listener;
pub mod listener_pool;
pub(crate) mod local_executor;
pub(crate) mod poll_on_wake;
pub(crate) mod reply_body;
pub(crate) mod request;
pub(crate) mod response_status;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tls;
