use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

const CLIENT: HttpClient = HttpClient { timeout: Duration::from_secs(30), max_response_bytes: 100 };

/// A server that answers one request with these bytes and then closes. Its task returns the request.
async fn answer_with(response: &'static str) -> (SocketAddr, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        let _ = stream.write_all(response.as_bytes()).await;
        request.truncate(length);
        String::from_utf8(request).unwrap()
    });
    (address, task)
}

async fn get(response: &'static str) -> Result<Bytes, HttpClientError> {
    let (address, _) = answer_with(response).await;
    CLIENT.get(&format!("http://{address}/x")).await
}

#[tokio::test]
async fn get_returns_the_body_and_names_the_host() {
    let (address, server) = answer_with("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    assert_eq!(CLIENT.get(&format!("http://{address}/a/b?c=d")).await.unwrap(), "hi");
    let request = server.await.unwrap();
    assert!(request.starts_with("GET /a/b?c=d HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("host: {address}\r\n")), "{request}");
}

#[tokio::test]
async fn post_sends_its_body_and_headers() {
    let (address, server) = answer_with("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
    let request = Request::post(format!("http://{address}/")).header(header::AUTHORIZATION, "Bearer abc");
    assert_eq!(CLIENT.send(request.body(Full::from("{}"))).await.unwrap(), "");
    let request = server.await.unwrap();
    assert!(request.contains("authorization: Bearer abc\r\n") && request.ends_with("\r\n\r\n{}"), "{request}");
}

#[tokio::test]
async fn error_status_comes_with_the_beginning_of_its_body() {
    let error = get("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone").await.unwrap_err();
    assert_eq!(error.to_string(), "unexpected HTTP status 404 Not Found");
    assert!(matches!(error, HttpClientError::Status { body, .. } if body == "gone"));
}

#[tokio::test]
async fn response_beyond_its_limit_is_an_error() {
    let client = HttpClient { max_response_bytes: 3, ..CLIENT };
    let (address, _) = answer_with("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlong").await;
    let error = client.get(&format!("http://{address}/")).await.unwrap_err();
    assert!(matches!(error, HttpClientError::Read(ResponseReadError::TooLong)), "{error:?}");
}

#[tokio::test]
async fn response_that_breaks_off_or_is_no_http_is_an_error() {
    let error = get("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await.unwrap_err();
    assert!(matches!(error, HttpClientError::Read(ResponseReadError::Broken(_))), "{error:?}");
    let error = get("\u{16}\u{3}").await.unwrap_err();
    assert!(matches!(error, HttpClientError::Http(_)), "{error:?}");
}

#[tokio::test]
async fn silent_server_is_left_at_the_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = HttpClient { timeout: Duration::from_millis(50), ..CLIENT };
    let url = format!("http://{}/", silent.local_addr().unwrap());
    assert!(matches!(client.get(&url).await, Err(HttpClientError::Timeout)));
}

#[tokio::test]
async fn stream_is_read_piece_by_piece_to_its_end() {
    let (address, _) = answer_with("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\npieces").await;
    let request = Request::get(format!("http://{address}/")).body(Full::default());
    let mut stream = CLIENT.open_stream(request).await.unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = stream.next_chunk().await {
        all.extend_from_slice(&chunk.unwrap());
    }
    assert_eq!(all, b"pieces");
}

#[tokio::test]
async fn error_repeats_neither_the_credential_nor_the_url() {
    let closed = { TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap() };
    for url in [format!("http://user:hunter2@{closed}/hunter2"), "https://hunter2".into(), "hunter2 x".into()] {
        let request = Request::get(url).header(header::AUTHORIZATION, "Bearer hunter2").body(Full::default());
        let error = CLIENT.send(request).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
