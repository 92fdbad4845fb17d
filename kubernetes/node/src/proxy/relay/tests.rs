use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
    time::timeout,
};

use super::*;

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (client, listener.accept().await.unwrap().0)
}

/// A client and a server with a relay between them.
async fn world() -> (TcpStream, TcpStream, JoinHandle<()>) {
    let (client, one) = pair().await;
    let (server, other) = pair().await;
    let pipes = Arc::new(PipePool::default());
    let task = tokio::spawn(async move { relay(one, other, &pipes).await });
    (client, server, task)
}

/// Bytes without repetitions.
fn noise(count: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    std::iter::repeat_with(|| random.u8(..)).take(count).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_goes_in_comes_out_in_both_directions() {
    for size in [1, 100, COPY_BUFFER_BYTES - 1, COPY_BUFFER_BYTES, COPY_BUFFER_BYTES + 1, 100_000, 10_000_000] {
        let (client, server, task) = world().await;
        let there = noise(size);
        let back = noise(size / 2 + 1);
        let (mut from_client, mut to_server) = client.into_split();
        let (mut from_server, mut to_client) = server.into_split();
        let sends = async {
            tokio::join!(to_server.write_all(&there), to_client.write_all(&back)).0.unwrap();
            tokio::join!(to_server.shutdown(), to_client.shutdown()).0.unwrap();
        };
        let mut at_server = Vec::new();
        let mut at_client = Vec::new();
        let takes = async {
            tokio::join!(from_server.read_to_end(&mut at_server), from_client.read_to_end(&mut at_client)).0.unwrap();
        };
        tokio::join!(sends, takes);
        assert!(at_server == there && at_client == back, "{size}");
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_side_that_has_ended_still_hears() {
    let (mut client, mut server, task) = world().await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut heard = Vec::new();
    server.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"question");
    let answer = noise(300_000);
    let sent = answer.clone();
    let send = tokio::spawn(async move {
        server.write_all(&sent).await.unwrap();
        drop(server);
    });
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.unwrap();
    assert!(heard == answer);
    send.await.unwrap();
    task.await.unwrap();
}

#[tokio::test]
async fn when_one_breaks_off_so_does_the_other() {
    let (client, mut server, task) = world().await;
    client.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(server.read(&mut [0; 1]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    task.await.unwrap();

    let (mut client, server, task) = world().await;
    server.set_zero_linger().unwrap();
    drop(server);
    assert_eq!(client.read(&mut [0; 1]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    task.await.unwrap();
}

#[tokio::test]
async fn an_answer_that_comes_before_all_of_the_question_is_heard() {
    let (mut client, mut server, task) = world().await;
    let send = tokio::spawn(async move {
        // The other side does not read all of it.
        let _ = client.write_all(&noise(20_000_000)).await;
        client
    });
    server.read_exact(&mut [0; 1000]).await.unwrap();
    server.write_all(b"too long").await.unwrap();
    drop(server);
    let mut client = send.await.unwrap();
    let mut heard = [0; 8];
    client.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"too long");
    drop(client);
    task.await.unwrap();
}

#[tokio::test]
async fn nothing_is_read_that_the_other_side_does_not_take() {
    let (client, server, _task) = world().await;
    let mut sent = 0;
    // The kernel's buffers hold at most some megabytes; the sender is blocked after that.
    let chunk = vec![0; 64 << 10];
    while timeout(Duration::from_millis(300), client.writable()).await.is_ok() {
        if let Ok(count) = client.try_write(&chunk) {
            sent += count;
        }
        assert!(sent < 64 << 20);
    }
    drop(server);
}

#[tokio::test]
async fn pipes_are_given_back() {
    let (client, one) = pair().await;
    let (server, other) = pair().await;
    let pipes = Arc::new(PipePool::default());
    let held = Arc::clone(&pipes);
    let task = tokio::spawn(async move { relay(one, other, &held).await });
    let mut client = client;
    let mut server = server;
    let send = tokio::spawn(async move {
        client.write_all(&noise(5_000_000)).await.unwrap();
        client
    });
    server.read_exact(&mut vec![0; 5_000_000]).await.unwrap();
    let client = send.await.unwrap();
    assert!(pipes.0.lock().len() <= 1);
    drop((client, server));
    task.await.unwrap();
    let pipe = pipes.take().unwrap();
    assert_eq!(rustix::io::ioctl_fionread(&pipe.from).unwrap(), 0);
}
