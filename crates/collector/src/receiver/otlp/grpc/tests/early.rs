//! Calls that are answered before their message has arrived.

use super::*;

/// Size limit of a message here. The response to a larger one is followed by that much more of it.
const MAX: u32 = 4 << 20;

/// Runs both sides as far as possible without time passing.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn message_larger_than_allowed_is_refused_at_once_and_its_client_may_finish() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    let (pieces, answer) = client.begin(EXPORT).await;
    pieces.send(announced(MAX + 1)).unwrap();
    let began = tokio::time::Instant::now();
    let answer = answer.await.unwrap().unwrap();
    let status = answer.headers()["grpc-status"].to_str().unwrap();
    assert_eq!((status, began.elapsed()), ("8", Duration::ZERO));
    assert!(answer.headers()["grpc-message"].to_str().unwrap().contains("larger than max"));
    for _ in 0..3 {
        settle().await;
        pieces.send(vec![0; 1 << 20].into()).expect("the stream was not reset under the client");
    }
    drop((pieces, answer));
    assert_taken(client.call(EXPORT, &export()).await).await;
    client.ended().await;
    f.is_clean();
}

#[tokio::test(start_paused = true)]
async fn client_that_goes_on_for_long_after_the_answer_is_cut() {
    let f = fixture(ServerKeepalive::default(), Target::Takes);
    let mut client = f.connect().await;
    for piece in [vec![0; 1 << 20], Vec::new()] {
        let (pieces, answer) = client.begin(EXPORT).await;
        pieces.send(announced(MAX + 1)).unwrap();
        assert_eq!(answer.await.unwrap().unwrap().headers()["grpc-status"], "8");
        let piece = Bytes::from(piece);
        let began = tokio::time::Instant::now();
        let mut sent = 0;
        let is_silent = piece.is_empty();
        while !pieces.is_closed() {
            assert!(sent < 4 * MAX as usize && began.elapsed() < 20 * SECOND, "{sent} bytes");
            if is_silent {
                tokio::time::sleep(SECOND).await;
            } else {
                let _ = pieces.send(piece.clone());
                sent += piece.len();
                settle().await;
            }
        }
    }
    client.ended().await;
    f.is_clean();
}
