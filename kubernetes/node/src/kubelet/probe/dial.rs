//! Connections, with the error messages of kubelets.

use std::{io, time::Duration};

use tokio::{net::TcpStream, time::timeout};

pub(super) async fn dial_tcp(host: &str, port: u16, limit: Duration) -> Result<TcpStream, String> {
    match timeout(limit, connect_tcp(host, port)).await {
        Ok(connected) => connected,
        Err(_) => Err(format!("dial tcp {}: i/o timeout", join_host_port(host, port))),
    }
}

/// Connects. The caller sets a time limit.
pub(super) async fn connect_tcp(host: &str, port: u16) -> Result<TcpStream, String> {
    let stream = TcpStream::connect((host, port)).await;
    let stream =
        stream.map_err(|error| format!("dial tcp {}: {}", join_host_port(host, port), error_message(&error)))?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Formats `host:port`, with brackets around an IPv6 address.
pub(super) fn join_host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn error_message(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connect: connection reset by peer".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => error.to_string(),
    }
}
