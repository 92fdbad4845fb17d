use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};

use super::*;

/// A listener whose connections send one byte and then end when the test says so, or on shutdown.
fn door(stubborn: bool) -> (ConnectionListener, Arc<Notify>, Arc<AtomicUsize>) {
    let go = Arc::new(Notify::new());
    let served = Arc::new(AtomicUsize::new(0));
    let shared = (go.clone(), served.clone());
    let door = ConnectionListener::start(Arc::new(bind("127.0.0.1:0").unwrap()), move |mut stream, _, mut closing| {
        let (go, served) = shared.clone();
        async move {
            served.fetch_add(1, Ordering::Relaxed);
            stream.write_all(b"!").await.unwrap();
            tokio::select! {
                () = go.notified() => {}
                () = closing.wait(), if !stubborn => {}
            }
        }
    });
    (door.unwrap(), go, served)
}

async fn connect(door: &ConnectionListener) -> TcpStream {
    let mut stream = TcpStream::connect(door.address()).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'!');
    stream
}

#[tokio::test]
async fn closing_stops_accepting_and_ends_when_the_last_connection_is_gone() {
    let (door, go, _) = door(true);
    let _client = connect(&door).await;
    door.shutdown();
    assert!(tokio::time::timeout(Duration::from_millis(50), door.wait_closed()).await.is_err(), "one is still there");
    assert!(TcpStream::connect(door.address()).await.is_err());
    go.notify_one();
    door.wait_closed().await;
}

#[tokio::test]
async fn connections_hear_that_the_door_closes() {
    let (door, ..) = door(false);
    let _clients = [connect(&door).await, connect(&door).await];
    door.shutdown();
    door.wait_closed().await;
}

#[tokio::test]
async fn cutting_ends_those_that_do_not_listen() {
    let (door, ..) = door(true);
    let mut client = connect(&door).await;
    door.shutdown();
    door.abort();
    door.wait_closed().await;
    assert_eq!(client.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_door_that_is_dropped_lets_its_connections_end_by_themselves() {
    let (door, go, served) = door(true);
    let mut client = connect(&door).await;
    let address = door.address();
    drop(door);
    assert!(tokio::time::timeout(Duration::from_millis(50), client.read_u8()).await.is_err(), "it is open");
    assert!(TcpStream::connect(address).await.is_err());
    go.notify_one();
    assert_eq!(client.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert_eq!(served.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_connection_that_panics_takes_nobody_along() {
    let listener = bind("127.0.0.1:0").unwrap();
    let first = AtomicUsize::new(0);
    let door = ConnectionListener::start(Arc::new(listener), move |mut stream, _, _| {
        let n = first.fetch_add(1, Ordering::Relaxed);
        async move {
            assert!(n > 0, "the first one panics");
            stream.write_all(b"!").await.unwrap();
        }
    });
    let door = door.unwrap();
    assert_eq!(TcpStream::connect(door.address()).await.unwrap().read(&mut [0; 1]).await.unwrap_or(0), 0);
    connect(&door).await;
}

#[test]
fn an_endpoint_without_a_port_or_with_a_port_in_use_is_named() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    assert!(bind("localhost").unwrap_err().to_string().contains("missing port"));
    let taken = bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _held = bind(&taken.to_string()).unwrap();
    let error = bind(&taken.to_string()).unwrap_err().to_string();
    assert!(error.contains(&taken.to_string()) && error.contains("in use"), "{error}");
}
