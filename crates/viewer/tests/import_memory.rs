//! What the import of a file takes at most, beside the store: a few times the file, however many documents and traces are in it.

#![allow(unsafe_code, clippy::unwrap_used, missing_docs)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fmt::Write as _,
    sync::atomic::{AtomicUsize, Ordering},
};

use kubewake_viewer::{Options, Viewer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Counts the bytes that are allocated at the moment, and the most that ever were.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(live, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The store's own limit.
const STORE: usize = 1 << 20;
/// The file as it comes and as a whole, one document of it decoded, the one piece that is taken apart, and the answer.
const TIMES: usize = 5;

#[tokio::test]
async fn an_import_takes_a_few_times_its_file() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = Options { listen, otlp_grpc: None, otlp_http: None, memory: STORE, ..Options::default() };
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
        let before = LIVE.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
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
        let most = MOST.load(Ordering::Relaxed) - before;
        assert!(most <= TIMES * size + 8 * STORE, "{most} bytes for a file of {size}");
    }
    viewer.stop().await;
}
