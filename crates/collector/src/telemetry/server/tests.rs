use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Answers with the requested path.
struct Echo(&'static str);

impl RouteHandler for Echo {
    fn get(&self, path: &str) -> Option<TelemetryResponse> {
        path.strip_prefix(self.0).map(|rest| TelemetryResponse::ok("text/plain", format!("you asked for {rest}")))
    }
}

async fn start() -> TelemetryServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    TelemetryServer::start(Arc::new(listener), None, Arc::new(Echo("/"))).expect("starts")
}

async fn talk(server: &TelemetryServer, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.expect("connects");
    stream.write_all(request.as_bytes()).await.expect("sends");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answers");
    answer
}

async fn ask(server: &TelemetryServer, method: &str, path: &str) -> String {
    talk(server, &format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).await
}

#[tokio::test]
async fn a_get_is_answered() {
    let server = start().await;
    let answer = ask(&server, "GET", "/a/b?c=d").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nyou asked for a/b"), "{answer}");
}

#[tokio::test]
async fn a_head_has_the_length_and_no_body() {
    let server = start().await;
    let answer = ask(&server, "HEAD", "/a").await;
    assert!(answer.contains("content-length: 15\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn other_methods_and_paths_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let server = TelemetryServer::start(Arc::new(listener), None, Arc::new(Echo("/only/"))).expect("starts");
    let answer = ask(&server, "GET", "/other").await;
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{answer}");
    let answer = talk(&server, "POST /only/a HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{answer}");
    assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
}

#[tokio::test]
async fn new_routes_are_in_force_on_an_open_connection() {
    let server = start().await;
    let mut stream = TcpStream::connect(server.address()).await.expect("connects");
    let mut buffer = [0; 1024];
    stream.write_all(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sends");
    let n = stream.read(&mut buffer).await.expect("answers");
    assert!(String::from_utf8_lossy(&buffer[..n]).starts_with("HTTP/1.1 200"));
    server.reconfigure(None, Arc::new(Echo("/new/")));
    stream.write_all(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sends");
    let n = stream.read(&mut buffer).await.expect("answers");
    assert!(String::from_utf8_lossy(&buffer[..n]).starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_the_port() {
    let server = start().await;
    let address = server.address();
    let mut stream = TcpStream::connect(address).await.expect("connects");
    stream.write_all(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sends");
    let mut buffer = [0; 1024];
    assert!(stream.read(&mut buffer).await.expect("answers") > 0);
    server.stop().await;
    assert_eq!(stream.read(&mut buffer).await.expect("ends"), 0);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_no_head_is_cut_off() {
    let server = start().await;
    let answer = talk(&server, "GET / HTTP/1.1\r\nhost").await;
    assert_eq!(answer, "");
}
