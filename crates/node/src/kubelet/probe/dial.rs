//! Connections, with errors in the words that people know from kubelets.

use std::{io, time::Duration};

use tokio::{net::TcpStream, time::timeout};

/// Connects within the limit.
pub(super) async fn tcp(host: &str, port: u16, limit: Duration) -> Result<TcpStream, String> {
    match timeout(limit, connect(host, port)).await {
        Ok(connected) => connected,
        Err(_) => Err(format!("dial tcp {}: i/o timeout", join(host, port))),
    }
}

/// Connects, for somebody who has set a limit.
pub(super) async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let stream = TcpStream::connect((host, port)).await;
    let stream = stream.map_err(|error| format!("dial tcp {}: {}", join(host, port), words(&error)))?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// `host:port`, with brackets where the host is an IPv6 address.
pub(super) fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connect: connection reset by peer".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        _ => error.to_string(),
    }
}
