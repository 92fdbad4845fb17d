//! What components that speak to the network share.

pub(crate) mod connect;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod in_task;
pub(crate) mod listen;
pub(crate) mod rarely;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod sockets;
pub(crate) mod status;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tls;
