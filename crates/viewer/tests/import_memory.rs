//! Peak memory of an import beside the store: a few times the file, whatever the number of documents and traces
//! in it.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write as _;

use kubewake_allocation_meter::{CountingAllocator, peak_bytes, reset_peak};
use kubewake_viewer::{Viewer, ViewerOptions};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const STORE: usize = 1 << 20;
/// The body in chunks and as a whole, one decoded document, one parsed piece, and the response.
const TIMES: usize = 5;

#[tokio::test]
async fn an_import_takes_a_few_times_its_file() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = ViewerOptions { listen, otlp_grpc: None, otlp_http: None, memory: STORE, ..ViewerOptions::default() };
    let viewer = Viewer::start(options).await.unwrap();
    let page = viewer.addresses().page;
    let span = |number: usize| format!(r#"{{"traceId":"{number:032x}","spanId":"{number:016x}"}}"#);
    let mut spans = span(1);
    for number in 2..=60_000 {
        write!(spans, ",{}", span(number)).unwrap();
    }
    let one = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#);
    drop(spans);
    let size = one.len();
    for (file, status) in
        [(one, "200"), ("1 ".repeat(size / 2), "400"), (format!("[{}1]", "1,".repeat(size / 2)), "400")]
    {
        let before = reset_peak();
        let head = format!(
            "POST /api/v1/import HTTP/1.1\r\nHost: {page}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            file.len()
        );
        let mut stream = TcpStream::connect(page).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(file.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let line = String::from_utf8_lossy(answer.get(..60).unwrap_or(&answer)).into_owned();
        assert!(line.contains(&format!(" {status} ")), "{line}");
        let most = peak_bytes() - before;
        assert!(most <= TIMES * size + 8 * STORE, "{most} bytes for a file of {size}");
    }
    viewer.stop().await;
}
