use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
    time::timeout,
};

use super::*;

/// An upper bound for everything here, on any machine.
const TIME_LIMIT: Duration = Duration::from_secs(30);

const OPTIONS: ListenerOptions =
    ListenerOptions { max_connections: 100, when_full: FullPolicy::Queue, when_dropped: DropPolicy::Drain };

async fn bind() -> Arc<TcpListener> {
    Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap())
}

/// Whether a connection reacts to the shutdown of its listener.
#[derive(Clone, Copy, PartialEq)]
enum Reaction {
    Ends,
    Stays,
}

struct TestListener {
    listener: ConnectionListener,
    /// Ends one connection.
    go: Arc<Notify>,
    served: Arc<AtomicUsize>,
}

/// A listener whose connections send one byte and then end when the test says so, or on shutdown.
async fn start(reaction: Reaction, options: ListenerOptions) -> TestListener {
    let go = Arc::new(Notify::new());
    let served = Arc::new(AtomicUsize::new(0));
    let shared = (go.clone(), served.clone());
    let listener = ConnectionListener::start(bind().await, options, move |mut stream, _, mut closing| {
        let (go, served) = shared.clone();
        async move {
            served.fetch_add(1, Ordering::Relaxed);
            stream.write_all(b"!").await.unwrap();
            tokio::select! {
                () = go.notified() => {}
                () = closing.wait(), if reaction == Reaction::Ends => {}
            }
        }
    });
    TestListener { listener: listener.unwrap(), go, served }
}

async fn connect(listener: &ConnectionListener) -> TcpStream {
    let mut stream = TcpStream::connect(listener.address()).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'!');
    stream
}

/// Reads to the end of a connection; a reset is an end, too.
async fn read_end(stream: &mut TcpStream) -> usize {
    timeout(TIME_LIMIT, stream.read(&mut [0; 1])).await.expect("the connection ends").unwrap_or(0)
}

#[tokio::test]
async fn shutdown_stops_accepting_and_ends_when_the_last_connection_is_gone() {
    let TestListener { listener, go, .. } = start(Reaction::Stays, OPTIONS).await;
    let _client = connect(&listener).await;
    listener.shutdown();
    assert!(timeout(Duration::from_millis(50), listener.wait_closed()).await.is_err(), "one is still there");
    assert!(TcpStream::connect(listener.address()).await.is_err());
    go.notify_one();
    listener.wait_closed().await;
}

#[tokio::test]
async fn connections_learn_of_the_shutdown() {
    let TestListener { listener, .. } = start(Reaction::Ends, OPTIONS).await;
    let _clients = [connect(&listener).await, connect(&listener).await];
    listener.shutdown();
    listener.wait_closed().await;
}

#[tokio::test]
async fn abort_ends_connections_that_ignore_the_shutdown() {
    let TestListener { listener, .. } = start(Reaction::Stays, OPTIONS).await;
    let mut client = connect(&listener).await;
    listener.shutdown();
    listener.abort();
    listener.wait_closed().await;
    assert_eq!(read_end(&mut client).await, 0);
}

#[tokio::test]
async fn drain_aborts_connections_after_its_limit() {
    let TestListener { listener, .. } = start(Reaction::Stays, OPTIONS).await;
    let mut client = connect(&listener).await;
    listener.drain(Duration::from_millis(20)).await;
    assert_eq!(read_end(&mut client).await, 0);
}

#[tokio::test]
async fn dropped_listener_lets_its_connections_end_by_themselves() {
    let TestListener { listener, go, served } = start(Reaction::Stays, OPTIONS).await;
    let mut client = connect(&listener).await;
    let address = listener.address();
    drop(listener);
    assert!(timeout(Duration::from_millis(50), client.read_u8()).await.is_err(), "it is open");
    assert!(TcpStream::connect(address).await.is_err());
    go.notify_one();
    assert_eq!(read_end(&mut client).await, 0);
    assert_eq!(served.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn dropped_listener_aborts_its_connections_when_the_policy_says_so() {
    let options = ListenerOptions { when_dropped: DropPolicy::Abort, ..OPTIONS };
    let TestListener { listener, .. } = start(Reaction::Stays, options).await;
    let mut client = connect(&listener).await;
    drop(listener);
    assert_eq!(read_end(&mut client).await, 0);
}

#[tokio::test]
async fn full_listener_leaves_new_connections_in_the_queue() {
    let options = ListenerOptions { max_connections: 1, ..OPTIONS };
    let TestListener { listener, go, .. } = start(Reaction::Stays, options).await;
    let mut first = connect(&listener).await;
    let mut second = TcpStream::connect(listener.address()).await.unwrap();
    assert!(timeout(Duration::from_millis(50), second.read_u8()).await.is_err(), "nobody serves it yet");
    go.notify_one();
    assert_eq!(read_end(&mut first).await, 0);
    assert_eq!(timeout(TIME_LIMIT, second.read_u8()).await.expect("it is served").unwrap(), b'!');
}

#[tokio::test]
async fn full_listener_closes_new_connections_when_the_policy_says_so() {
    let options = ListenerOptions { max_connections: 1, when_full: FullPolicy::Close, ..OPTIONS };
    let TestListener { listener, go, served } = start(Reaction::Stays, options).await;
    let mut first = connect(&listener).await;
    let mut second = TcpStream::connect(listener.address()).await.unwrap();
    assert_eq!(read_end(&mut second).await, 0);
    go.notify_one();
    assert_eq!(read_end(&mut first).await, 0);
    assert_eq!(served.load(Ordering::Relaxed), 1);
    // The place is free again.
    connect(&listener).await;
}

#[tokio::test]
async fn panic_of_a_connection_leaves_the_others_alone() {
    let first = AtomicUsize::new(0);
    let listener = ConnectionListener::start(bind().await, OPTIONS, move |mut stream, _, _| {
        let n = first.fetch_add(1, Ordering::Relaxed);
        async move {
            assert!(n > 0, "the first one panics");
            stream.write_all(b"!").await.unwrap();
        }
    });
    let listener = listener.unwrap();
    assert_eq!(read_end(&mut TcpStream::connect(listener.address()).await.unwrap()).await, 0);
    connect(&listener).await;
}

#[tokio::test]
async fn connection_is_told_to_end_and_then_waited_for() {
    let (trigger, mut closing) = ShutdownSignal::with_trigger();
    let told = Arc::new(Notify::new());
    let connection = told.clone();
    trigger();
    let ended = serve_until_shutdown(async move { connection.notified().await }, |_| told.notify_one(), &mut closing);
    timeout(TIME_LIMIT, ended).await.expect("it ends");
}
