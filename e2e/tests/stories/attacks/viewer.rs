//! Web pages and local users that want more of a viewer than is theirs.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use kubewake_e2e::{Http1Connection, HttpResponse, ViewerProcess, otlp::spans, wait_until};

fn export_as(host: &str, to: SocketAddr) -> HttpResponse {
    let body = spans(&["one"]);
    let mut connection = Http1Connection::connect(to);
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.send(head.as_bytes());
    connection.send(&body);
    connection.read_response(false)
}

#[test]
fn page_of_a_rebound_name_cannot_write_spans() {
    let viewer = ViewerProcess::start_with(&["--allow-host", "Viewer.Example"]);
    for host in ["evil.example", "evil.example:4318", "127.0.0.1.evil.example"] {
        let answer = export_as(host, viewer.http());
        assert_eq!(answer.status, 403, "{host}: {}", answer.text());
    }
    for host in ["localhost:4318", &viewer.http().to_string(), "[::1]:4318", "viewer.example"] {
        let answer = export_as(host, viewer.http());
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
    }
}

/// Whether a page is served. One connection too many is closed without an answer.
fn is_reachable(page: SocketAddr) -> bool {
    let mut answer = String::new();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let asked = TcpStream::connect(page).and_then(|mut stream| {
        stream.write_all(request)?;
        stream.read_to_string(&mut answer)
    });
    asked.is_ok() && answer.starts_with("HTTP/1.1 200")
}

/// Far more than connections are served.
const STREAMS: usize = 600;

#[test]
fn open_streams_leave_connections_for_pages() {
    let viewer = ViewerProcess::start();
    let page = viewer.url("").trim_start_matches("http://").parse().unwrap();
    let mut streams: Vec<_> = (0..STREAMS).map(|_| Http1Connection::connect(page)).collect();
    for stream in &mut streams {
        stream.send(b"GET /api/v1/live HTTP/1.1\r\nhost: localhost\r\n\r\n");
    }
    // Streams that are refused end with their connections, a moment later.
    wait_until("the page is reachable", || is_reachable(page));
    drop(streams);
}

#[test]
fn traces_on_disk_are_closed_to_other_users() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("traces");
    let viewer = ViewerProcess::start_with(&["--data-dir", folder.to_str().unwrap()]);
    assert_eq!(export_as("localhost", viewer.http()).status, 200);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2, "a lock and a segment: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}
