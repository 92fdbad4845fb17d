//! Connections that send nothing, too little, or too much.

use std::time::Duration;

use http_body_util::BodyExt;
use kubewake_apiserver::server::{ApiServer, Options};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    raw::{Http2, connect, request},
    victim::{JSON, MAPS, Victim, soon},
};

#[tokio::test]
async fn idle_and_half_open_connections_keep_nobody_out() {
    let victim = Victim::new().await;
    let mut open = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(victim.server.address()).await.unwrap();
        // Nothing, plain HTTP, and the beginning of a TLS handshake.
        let words: &[u8] = [b"".as_slice(), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00"][number % 3];
        stream.write_all(words).await.unwrap();
        open.push(stream);
    }
    let mut half = Vec::new();
    for _ in 0..30 {
        let mut stream = connect(&victim.server, "http/1.1").await;
        stream
            .write_all(format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{").as_bytes())
            .await
            .unwrap();
        half.push(stream);
        let mut stream = connect(&victim.server, "http/1.1").await;
        stream.write_all(b"GET / HT").await.unwrap();
        half.push(stream);
        half.push(connect(&victim.server, "h2").await);
    }
    victim.ends_well().await;
    drop((open, half));
}

#[tokio::test]
async fn more_connections_than_allowed_are_closed_until_others_end() {
    let server = ApiServer::start(Options { max_connections: 2, ..Options::default() }).await.unwrap();
    let first = Http2::new(&server).await;
    let second = Http2::new(&server).await;
    let mut third = TcpStream::connect(server.address()).await.unwrap();
    let _ = third.write_all(b"\x16\x03\x01").await;
    // Closed, or reset since it had sent data.
    assert_eq!(soon(third.read(&mut [0; 1])).await.unwrap_or(0), 0);
    assert_eq!(soon(first.call("GET", "/readyz", "", "")).await.0, 200);
    drop(second);
    // The server notices that with a delay.
    soon(async {
        loop {
            let mut next = TcpStream::connect(server.address()).await.unwrap();
            let greeting = tokio::time::timeout(Duration::from_millis(100), next.read(&mut [0; 1])).await;
            // An accepted connection receives nothing before it sends.
            if greeting.is_err() {
                return;
            }
        }
    })
    .await;
    soon(server.stop()).await;
}

#[tokio::test]
async fn frames_that_are_none_end_their_connection_only() {
    let victim = Victim::new().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..50 {
        let mut stream = connect(&victim.server, "h2").await;
        let mut bytes = preface.to_vec();
        bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        bytes.extend((0..random.usize(1..500)).map(|_| random.u8(..)));
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = soon(stream.read_to_end(&mut answer)).await;
    }
    victim.ends_well().await;
}

#[tokio::test]
async fn requests_that_are_reset_leave_nothing_behind() {
    let victim = Victim::new().await;
    let client = Http2::new(&victim.server).await;
    let body = r#"{"metadata":{"generateName":"reset-"}}"#;
    for round in 0..500 {
        let path = if round % 2 == 0 { MAPS.to_owned() } else { format!("{MAPS}?watch=1") };
        let request = if round % 2 == 0 { request("POST", &path, JSON, body) } else { request("GET", &path, "", "") };
        let mut sending = std::pin::pin!(client.send(request));
        // Started and then dropped.
        tokio::select! {
            biased;
            answer = &mut sending => drop(answer),
            () = tokio::task::yield_now() => {}
        }
    }
    // Every created object is complete.
    let listed = victim.call("GET", MAPS, "", "").await;
    assert!(listed.body["items"].as_array().unwrap().iter().all(|item| item["metadata"]["uid"].is_string()));
    victim.ends_well().await;
}

/// Resident memory of this process, which includes the server and the test.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn watchers_that_do_not_read_cost_little_and_are_told_that_they_are_late() {
    let options = Options { history_bytes: 2 << 20, ..Options::default() };
    let server = ApiServer::start(options).await.unwrap();
    let writer = Http2::new(&server).await;
    let deaf = Http2::new(&server).await;
    let mut watches = Vec::new();
    for _ in 0..100 {
        let answer = soon(deaf.send(request("GET", &format!("{MAPS}?watch=1"), "", ""))).await.unwrap();
        watches.push(answer.into_body());
    }
    let before = memory();
    let text = "x".repeat(50_000);
    // 400 events of 50 kB: buffered for all watchers, they would take two gigabytes.
    for number in 0..200 {
        let name = format!("a{number}");
        let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"key":"{text}"}}}}"#);
        assert_eq!(soon(writer.call("POST", MAPS, JSON, body)).await.0, 201);
        assert_eq!(soon(writer.call("DELETE", &format!("{MAPS}/{name}"), "", "")).await.0, 200);
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < 300, "{grown} MiB");
    // A watch that is read late gets the error.
    let mut late = watches.pop().unwrap();
    // The others occupy the window that the streams of a connection share.
    drop(watches);
    let mut read = Vec::new();
    soon(async {
        while let Some(frame) = late.frame().await {
            read.extend_from_slice(frame.unwrap().data_ref().unwrap());
        }
    })
    .await;
    let last = String::from_utf8_lossy(&read).lines().last().unwrap_or_default().to_owned();
    assert!(last.contains(r#""type":"ERROR""#) && last.contains(r#""code":410"#), "{last:.300}");
    soon(server.stop()).await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_those_who_do_not_read() {
    let victim = Victim::new().await;
    let deaf = Http2::new(&victim.server).await;
    let mut watches = Vec::new();
    for _ in 0..10 {
        watches.push(soon(deaf.send(request("GET", &format!("{MAPS}?watch=1"), "", ""))).await.unwrap());
    }
    soon(tokio::time::timeout(Duration::from_secs(10), victim.server.stop())).await.unwrap();
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    let victim = Victim::new().await;
    let mut tasks = JoinSet::new();
    for connection in 0..8 {
        let client = Http2::new(&victim.server).await;
        for number in 0..50 {
            let client = client.clone();
            tasks.spawn(async move {
                let body = format!(r#"{{"metadata":{{"name":"m-{connection}-{number}"}}}}"#);
                client.call("POST", MAPS, JSON, body).await.0
            });
        }
    }
    while let Some(code) = soon(tasks.join_next()).await {
        assert_eq!(code.unwrap(), 201);
    }
    victim.ends_well().await;
}
